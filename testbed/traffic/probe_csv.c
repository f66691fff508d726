// SPDX-License-Identifier: GPL-2.0-only
/*
 * The two tables. Numbers have fixed decimals; what the kernel does not know
 * is an empty field.
 */
#include "labprobe.h"

#include <inttypes.h>
#include <netinet/in.h>

#define MBPS_PER_BYTES_PER_S (8 / 1e6)
#define BBR_MIN_RTT_NONE UINT32_MAX
#define VEGAS_RTT_NONE INT32_MAX
#define BBR_GAIN_ONE 256.0 /* gains have 8 bits after the point */

static void empty(FILE *out)
{
	fputc(',', out);
}

static void number(FILE *out, uint64_t value)
{
	fprintf(out, ",%" PRIu64, value);
}

static void milliseconds(FILE *out, uint32_t time_us)
{
	fprintf(out, ",%" PRIu32 ".%03" PRIu32, time_us / 1000, time_us % 1000);
}

static void optional_milliseconds(FILE *out, uint32_t time_us, uint32_t none)
{
	if (time_us == none)
		empty(out);
	else
		milliseconds(out, time_us);
}

/* The kernel says 0 while it has no sample and all ones for no limit. */
static void rate_mbps(FILE *out, uint64_t bytes_per_s)
{
	if (!bytes_per_s || bytes_per_s == UINT64_MAX)
		empty(out);
	else
		fprintf(out, ",%.6f", (double)bytes_per_s * MBPS_PER_BYTES_PER_S);
}

static void tick_time(FILE *out, const struct probe *probe, uint32_t tick)
{
	uint64_t time_ms = (uint64_t)tick * probe->interval_ms;

	fprintf(out, "%" PRIu64 ".%03" PRIu64, time_ms / 1000, time_ms % 1000);
}

static const char *ca_state_name(uint8_t state)
{
	static const char *const names[] = { "open", "disorder", "cwr", "recovery", "loss" };

	return state < sizeof(names) / sizeof(names[0]) ? names[state] : "";
}

static void bbr_columns(FILE *out, const struct tcp_bbr_info *bbr)
{
	uint64_t bw = (uint64_t)bbr->bbr_bw_hi << 32 | bbr->bbr_bw_lo;

	fprintf(out, ",bbr,%.6f", (double)bw * MBPS_PER_BYTES_PER_S);
	optional_milliseconds(out, bbr->bbr_min_rtt, BBR_MIN_RTT_NONE);
	fprintf(out, ",%.4f,%.4f,,", bbr->bbr_pacing_gain / BBR_GAIN_ONE,
		bbr->bbr_cwnd_gain / BBR_GAIN_ONE);
}

static void cc_columns(FILE *out, const struct flow_sample *sample)
{
	switch (sample->cc_kind) {
	case CC_BBR:
		bbr_columns(out, &sample->cc.bbr);
		return;
	case CC_VEGAS:
		fputs(",vegas,,,,", out);
		milliseconds(out, sample->cc.vegas.tcpv_rtt);
		optional_milliseconds(out, sample->cc.vegas.tcpv_minrtt, VEGAS_RTT_NONE);
		return;
	case CC_DCTCP:
		fputs(",dctcp,,,,,,", out);
		return;
	case CC_NONE:
		fputs(",,,,,,,", out);
	}
}

static void window_columns(FILE *out, const struct tcp_info_abi *tcp)
{
	number(out, tcp->cwnd_pkts);
	if (tcp->ssthresh_pkts >= TCP_INFO_SSTHRESH_INFINITE)
		empty(out);
	else
		number(out, tcp->ssthresh_pkts);
	optional_milliseconds(out, tcp->srtt_us, 0);
	optional_milliseconds(out, tcp->rttvar_us, 0);
	optional_milliseconds(out, tcp->min_rtt_us, TCP_INFO_MIN_RTT_NONE);
	milliseconds(out, tcp->rto_us);
	/* tcp_packets_in_flight() of the kernel */
	number(out, (uint64_t)tcp->unacked_pkts - tcp->sacked_pkts - tcp->lost_pkts +
			    tcp->retrans_pkts);
	number(out, tcp->lost_pkts);
}

/*
 * SCTP counts chunks, which labflow makes all alike, and bytes of window. Its smoothed
 * round trip comes in the kernel's ticks, whose length is not told.
 */
static void sctp_columns(FILE *out, const struct sctp_info *sctp)
{
	uint32_t payload = sctp->sctpi_maxseg ? sctp->sctpi_maxseg : 1;
	uint64_t acked = sctp->sctpi_oodchunks - sctp->sctpi_unackdata;

	number(out, sctp->sctpi_p_cwnd / payload);
	number(out, sctp->sctpi_p_ssthresh / payload);
	fprintf(out, ",,,,%" PRIu32, sctp->sctpi_p_rto);
	number(out, sctp->sctpi_p_flight_size / payload);
	empty(out);
	number(out, sctp->sctpi_rtxchunks);
	empty(out);
	number(out, acked * payload);
	fputs(",,,,,,,,,", out);
}

static void write_flow(FILE *out, const struct probe *probe, const struct flow_sample *sample)
{
	const struct flow_target *flows = probe->flows.items;
	const struct tcp_info_abi *tcp = &sample->tcp;

	tick_time(out, probe, sample->tick);
	if (flows[sample->flow].protocol == IPPROTO_SCTP) {
		fprintf(out, ",%s,%s,", flows[sample->flow].name, sample->algorithm);
		sctp_columns(out, &sample->sctp);
		fputc('\n', out);
		return;
	}
	fprintf(out, ",%s,%s,%s", flows[sample->flow].name, sample->algorithm,
		ca_state_name(tcp->ca_state));
	window_columns(out, tcp);
	number(out, tcp->total_retrans_pkts);
	if (TCP_INFO_HAS(sample->tcp_length, total_rto))
		number(out, tcp->total_rto);
	else
		empty(out);
	number(out, tcp->bytes_acked);
	rate_mbps(out, tcp->delivery_rate_bytes_per_s);
	rate_mbps(out, tcp->pacing_rate_bytes_per_s);
	cc_columns(out, sample);
	fputc('\n', out);
}

void write_flows_csv(FILE *out, const struct probe *probe)
{
	const struct flow_sample *samples = probe->flow_samples.items;

	fputs("time_s,flow,algorithm,ca_state,cwnd_pkts,ssthresh_pkts,srtt_ms,rttvar_ms,"
	      "min_rtt_ms,rto_ms,inflight_pkts,lost_pkts,retransmits,timeouts,bytes_acked,"
	      "delivery_rate_mbps,pacing_rate_mbps,cc_kind,cc_bw_mbps,cc_min_rtt_ms,"
	      "cc_pacing_gain,cc_cwnd_gain,vegas_rtt_ms,vegas_minrtt_ms\n",
	      out);
	for (size_t i = 0; i < probe->flow_samples.count; i++)
		write_flow(out, probe, &samples[i]);
}

void write_hops_csv(FILE *out, const struct probe *probe)
{
	const struct hop_sample *samples = probe->hop_samples.items;
	const struct hop_target *hops = probe->hops.items;

	fputs("time_s,hop,sent_pkts,sent_bytes,drops,backlog_pkts,backlog_bytes,overlimits,"
	      "ce_marks\n",
	      out);
	for (size_t i = 0; i < probe->hop_samples.count; i++) {
		const struct hop_sample *sample = &samples[i];

		tick_time(out, probe, sample->tick);
		fprintf(out, ",%s", hops[sample->hop].name);
		number(out, sample->sent_pkts);
		number(out, sample->sent_bytes);
		number(out, sample->drops);
		number(out, sample->backlog_pkts);
		number(out, sample->backlog_bytes);
		number(out, sample->overlimits);
		number(out, sample->ce_marks);
		fputc('\n', out);
	}
}

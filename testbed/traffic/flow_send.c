// SPDX-License-Identifier: GPL-2.0-only
#include "common.h"
#include "labflow.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct flow_times {
	int64_t start_ns;
	int64_t connected_ns; /* -1: never */
	int64_t end_ns;
};

/*
 * One absolute timer ends a blocked call; nothing polls the clock. Its 1 ms
 * repetition is for the signal that comes just before a call blocks.
 */
static int arm_end_timer(int64_t end_ns, char error[FLOW_ERROR_MAX])
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM };
	struct itimerspec when = { .it_value = timespec_from_ns(end_ns),
				   .it_interval = { .tv_nsec = NSEC_PER_MSEC } };
	timer_t timer;

	if (timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 &&
	    timer_settime(timer, TIMER_ABSTIME, &when, NULL) == 0)
		return 0;
	snprintf(error, FLOW_ERROR_MAX, "cannot set the end timer: %s", strerror(errno));
	return -1;
}

static int transfer(struct flow *flow, const struct send_schedule *schedule,
		    struct flow_times *times)
{
	const struct transport *transport = flow->options->transport;
	int connected;

	if (transport->open(flow) < 0)
		return -1;
	if (schedule->duration_ns &&
	    arm_end_timer(times->start_ns + schedule->duration_ns, flow->error) < 0)
		return -1;
	if (schedule->start_ns && !sleep_until_ns(times->start_ns)) {
		snprintf(flow->error, FLOW_ERROR_MAX, "stopped before the start time");
		return -1;
	}
	connected = transport->connect(flow);
	if (connected != 0)
		return connected;
	flow->connected = true;
	times->connected_ns = clock_read_ns(CLOCK_MONOTONIC);
	return transport->send(flow);
}

static void report_info(FILE *out, const struct flow_info *info)
{
	fprintf(out, ",\"bytes_acked\":%" PRIu64 ",\"bytes_sent\":%" PRIu64, info->bytes_acked,
		info->bytes_sent);
	fprintf(out, ",\"bytes_retrans\":%" PRIu64 ",\"segs_out\":%" PRIu32, info->bytes_retrans,
		info->segs_out);
	fprintf(out, ",\"data_segs_out\":%" PRIu32 ",\"retransmits\":%" PRIu32,
		info->data_segs_out, info->retransmits);
	if (info->timeouts < 0)
		fputs(",\"timeouts\":null", out);
	else
		fprintf(out, ",\"timeouts\":%" PRId64, info->timeouts);
	fprintf(out, ",\"mss_bytes\":%" PRIu32, info->mss_bytes);
	if (info->min_rtt_us < 0)
		fputs(",\"min_rtt_us\":null", out);
	else
		fprintf(out, ",\"min_rtt_us\":%" PRId64, info->min_rtt_us);
	fprintf(out, ",\"srtt_us\":%" PRIu32 ",\"cwnd_pkts\":%" PRIu32, info->srtt_us,
		info->cwnd_pkts);
	fprintf(out, ",\"delivered\":%" PRIu32 ",\"delivered_ce\":%" PRIu32,
		info->delivered_pkts, info->delivered_ce_pkts);
	fprintf(out, ",\"reord_seen\":%" PRIu32, info->reord_seen);
}

static void report_no_info(FILE *out)
{
	static const char *const keys[] = {
		"bytes_acked", "bytes_sent", "bytes_retrans", "segs_out",  "data_segs_out",
		"retransmits", "timeouts",   "mss_bytes",     "min_rtt_us", "srtt_us",
		"cwnd_pkts",   "delivered",  "delivered_ce",  "reord_seen",
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		json_key(out, keys[i]);
		fputs("null", out);
	}
}

static void report_answers(FILE *out, const struct flow *flow, int64_t end_ns)
{
	json_key(out, "answers_s");
	fputc('[', out);
	for (uint32_t i = 0; i < flow->answers; i++)
		fprintf(out, "%s%.9f", i ? "," : "", (double)flow->answers_ns[i] / NSEC_PER_SEC);
	fputc(']', out);
	json_seconds(out, "unanswered_s",
		     flow->waiting_since_ns ? end_ns - flow->waiting_since_ns : -1);
}

/* INFO is NULL if the socket could not be read. */
static void report_flow(FILE *out, const struct flow *flow, const struct flow_times *times,
			bool completed, const struct flow_info *info)
{
	bool acked = flow->completed;

	fputs("{\"name\":", out);
	json_string(out, flow->options->name);
	json_key(out, "transport");
	json_string(out, flow->options->transport->name);
	json_key(out, "algorithm");
	json_string(out, info && info->algorithm[0] ? info->algorithm : NULL);
	json_key(out, "source_port");
	fprintf(out, "%u", info ? info->source_port : ntohs(flow->options->local.sin_port));
	json_seconds(out, "start_s", times->start_ns);
	json_seconds(out, "connected_s", times->connected_ns);
	json_seconds(out, "end_s", times->end_ns);
	json_seconds(out, "completion_time_s", acked ? times->end_ns - times->start_ns : -1);
	json_key(out, "completed");
	fputs(completed ? "true" : "false", out);
	if (info)
		report_info(out, info);
	else
		report_no_info(out);
	if (flow->options->repeats)
		report_answers(out, flow, times->end_ns);
	json_key(out, "error");
	json_string(out, flow->error[0] ? flow->error : NULL);
	fputs("}\n", out);
}

int send_run(const struct flow_options *options, const struct send_schedule *schedule,
	     FILE *report)
{
	const struct transport *transport = options->transport;
	struct flow flow = { .options = options, .fd = -1 };
	struct flow_times times = { .start_ns = schedule->start_ns, .connected_ns = -1 };
	struct flow_info info;
	bool have_info, completed;

	stop_signals_catch();
	if (!times.start_ns)
		times.start_ns = clock_read_ns(CLOCK_MONOTONIC);
	if (transfer(&flow, schedule, &times) == 0 && stop_signal && stop_signal != SIGALRM)
		snprintf(flow.error, sizeof(flow.error), "stopped by SIG%s",
			 sigabbrev_np(stop_signal));
	times.end_ns = clock_read_ns(CLOCK_MONOTONIC);
	have_info = flow.fd >= 0 && transport->info(&flow, &info) == 0;
	if (flow.fd >= 0)
		transport->close(&flow);
	stop_signals_done();

	completed = !flow.error[0] && times.connected_ns >= 0 &&
		    (flow.completed || !options->bytes);
	if (flow.error[0])
		complain("%s", flow.error);
	report_flow(report, &flow, &times, completed, have_info ? &info : NULL);
	free(flow.answers_ns);
	return flow.error[0] ? EXIT_FAILED : EXIT_DONE;
}

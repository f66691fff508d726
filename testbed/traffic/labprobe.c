// SPDX-License-Identifier: GPL-2.0-only
/*
 * labprobe - samples TCP sockets and root qdiscs of any network namespaces at
 * fixed times and writes them as CSV when it ends.
 *
 * A tick costs 1 system call to sleep and 2 for each pair of namespace and
 * kind (flows, hops), however many flows or hops there are: 5 a tick for all
 * the flows and all the hops of one namespace. Counted by the test suite.
 */
#include "labprobe.h"
#include "common.h"

#include <getopt.h>
#include <limits.h>
#include <linux/pkt_sched.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
	"usage: labprobe --interval-ms N --end-at-s T2 [options]\n"
	"\n"
	"  --interval-ms N          time between two samples, milliseconds\n"
	"  --start-at-s T           CLOCK_MONOTONIC time of the first, seconds (default: now)\n"
	"  --end-at-s T2            no sample after this CLOCK_MONOTONIC time, seconds\n"
	"  --sock NAME:NETNS:SPORT  a TCP (IPv4) flow by its source port; repeatable\n"
	"  --sctp-sock NAME:NETNS:SPORT  an SCTP (IPv4) flow; repeatable\n"
	"  --flows FILE.csv         where the flows go; - is standard output\n"
	"  --hop NAME:NETNS:DEV     a device, whose root qdisc is sampled; repeatable\n"
	"  --aqm-hop NAME:NETNS:DEV a device whose root shapes; the qdisc in its class 1:1\n"
	"                           is sampled; repeatable\n"
	"  --hops FILE.csv          where the hops go; - is standard output\n"
	"\n"
	"NETNS is a path such as /proc/PID/ns/net, or - for the current namespace.\n"
	"SIGTERM and SIGINT write what has been sampled. time_s is the nominal time\n"
	"since T; counters run from the start of the socket or the qdisc. bytes_acked\n"
	"is the kernel's, which counts a sent SYN and an acknowledged FIN as a byte each.\n"
	"cc_pacing_gain and cc_cwnd_gain are the kernel's numbers divided by 256; the\n"
	"jitter modules put percent of jitter ratio and packets of backlog there.\n"
	"A flow that does not exist (yet) and a device never up give no row; one with\n"
	"noqueue gives zeros.\n"
	"Exit 0: done; 1: failed; 2: bad options.\n";

#define AQM_CLASS 0x10001u /* 1:1, the one of tbf */

enum option_code {
	OPT_INTERVAL_MS = 1,
	OPT_START_AT_S,
	OPT_END_AT_S,
	OPT_SOCK,
	OPT_SCTP_SOCK,
	OPT_HOP,
	OPT_AQM_HOP,
	OPT_FLOWS,
	OPT_HOPS,
	OPT_HELP,
};

static const struct option long_options[] = {
	{ "interval-ms", required_argument, NULL, OPT_INTERVAL_MS },
	{ "start-at-s", required_argument, NULL, OPT_START_AT_S },
	{ "end-at-s", required_argument, NULL, OPT_END_AT_S },
	{ "sock", required_argument, NULL, OPT_SOCK },
	{ "sctp-sock", required_argument, NULL, OPT_SCTP_SOCK },
	{ "hop", required_argument, NULL, OPT_HOP },
	{ "aqm-hop", required_argument, NULL, OPT_AQM_HOP },
	{ "flows", required_argument, NULL, OPT_FLOWS },
	{ "hops", required_argument, NULL, OPT_HOPS },
	{ "help", no_argument, NULL, OPT_HELP },
	{ 0 },
};

/* An argument of --sock or --sctp-sock. */
struct sock_option {
	const char *text;
	bool sctp;
};

/* An argument of --hop or --aqm-hop. */
struct hop_option {
	const char *text;
	bool aqm;
};

struct settings {
	int64_t start_ns; /* 0: now */
	int64_t end_ns; /* -1: not given */
	unsigned int interval_ms;
	const char *flows_path;
	const char *hops_path;
	struct sock_option *socks;
	struct hop_option *hops;
	unsigned int sock_count;
	unsigned int hop_count;
};

/* NAME:NETNS:LAST, cut at the first and the last colon, in a copy to keep. */
struct target_spec {
	char *name;
	char *netns;
	char *last;
};

static struct target_spec split_target(const char *option, const char *text, const char *what)
{
	char *copy = strdup(text);
	char *first = copy ? strchr(copy, ':') : NULL;
	char *last = copy ? strrchr(copy, ':') : NULL;

	if (!copy || !first || first == last || first == copy || last == first + 1 || !last[1])
		bad_options("%s takes NAME:NETNS:%s, not '%s'", option, what, text);
	*first = '\0';
	*last = '\0';
	if (strpbrk(copy, ",\"\r\n"))
		bad_options("the name in %s '%s' may not contain a comma, quote or line end",
			    option, text);
	return (struct target_spec){ copy, first + 1, last + 1 };
}

static void take_option(int code, struct settings *settings)
{
	switch (code) {
	case OPT_INTERVAL_MS:
		settings->interval_ms =
			(unsigned int)option_number("--interval-ms", optarg, 1, UINT_MAX);
		break;
	case OPT_START_AT_S:
		settings->start_ns = option_seconds_ns("--start-at-s", optarg);
		break;
	case OPT_END_AT_S:
		settings->end_ns = option_seconds_ns("--end-at-s", optarg);
		break;
	case OPT_SOCK:
	case OPT_SCTP_SOCK:
		settings->socks[settings->sock_count++] =
			(struct sock_option){ optarg, code == OPT_SCTP_SOCK };
		break;
	case OPT_HOP:
	case OPT_AQM_HOP:
		settings->hops[settings->hop_count++] =
			(struct hop_option){ optarg, code == OPT_AQM_HOP };
		break;
	case OPT_FLOWS:
		settings->flows_path = optarg;
		break;
	case OPT_HOPS:
		settings->hops_path = optarg;
		break;
	case OPT_HELP:
		fputs(usage, stdout);
		exit(EXIT_DONE);
	}
}

static void check_settings(const struct settings *settings)
{
	if (!settings->interval_ms)
		bad_options("--interval-ms is missing; see --help");
	if (settings->end_ns < 0)
		bad_options("--end-at-s is missing; see --help");
	if (settings->start_ns > settings->end_ns)
		bad_options("--end-at-s lies before --start-at-s");
	if (!settings->sock_count && !settings->hop_count)
		bad_options("nothing to sample: give --sock or --hop");
	if (settings->sock_count && !settings->flows_path)
		bad_options("--sock needs --flows FILE.csv");
	if (settings->hop_count && !settings->hops_path)
		bad_options("--hop needs --hops FILE.csv");
}

static struct settings parse_options(int argc, char **argv)
{
	struct settings settings = { .end_ns = -1 };
	int code;

	settings.socks = calloc((size_t)argc, sizeof(*settings.socks));
	settings.hops = calloc((size_t)argc, sizeof(*settings.hops));
	if (!settings.socks || !settings.hops)
		bad_options("out of memory");
	opterr = 0;
	while ((code = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
		if (code == ':' || code == '?')
			bad_getopt(code, argv);
		take_option(code, &settings);
	}
	if (optind < argc)
		bad_options("unexpected argument '%s'; see --help", argv[optind]);
	check_settings(&settings);
	return settings;
}

static bool add_targets(struct probe *probe, const struct settings *settings)
{
	for (unsigned int i = 0; i < settings->sock_count; i++) {
		const struct sock_option *sock = &settings->socks[i];
		const char *option = sock->sctp ? "--sctp-sock" : "--sock";
		struct target_spec spec = split_target(option, sock->text, "SPORT");
		uint16_t port = (uint16_t)option_number("SPORT of --sock", spec.last, 1,
							UINT16_MAX);

		if (!probe_add_flow(probe, sock->text, spec.name, spec.netns, port,
				    sock->sctp ? IPPROTO_SCTP : IPPROTO_TCP))
			return false;
	}
	for (unsigned int i = 0; i < settings->hop_count; i++) {
		const struct hop_option *hop = &settings->hops[i];
		struct target_spec spec = split_target(hop->aqm ? "--aqm-hop" : "--hop",
						       hop->text, "DEV");
		uint32_t parent = hop->aqm ? AQM_CLASS : TC_H_ROOT;

		if (!probe_add_hop(probe, hop->text, spec.name, spec.netns, spec.last, parent))
			return false;
	}
	return true;
}

static bool sample_until_end(struct probe *probe, int64_t start_ns, int64_t end_ns)
{
	const int64_t interval_ns = probe->interval_ms * NSEC_PER_MSEC;
	int64_t tick_ns = start_ns;

	for (uint32_t tick = 0; tick_ns <= end_ns && sleep_until_ns(tick_ns); tick++) {
		if (!probe_sample(probe, tick))
			return false;
		tick_ns += interval_ns;
	}
	return true;
}

/* What was asked for and never there is worth a line: it leaves no row. */
static void complain_unseen(const struct probe *probe)
{
	const struct flow_target *flows = probe->flows.items;
	const struct hop_target *hops = probe->hops.items;

	for (size_t i = 0; i < probe->flows.count; i++) {
		if (!flows[i].seen)
			complain("warning: flow %s was never there (source port %u)",
				 flows[i].name, flows[i].source_port);
	}
	for (size_t i = 0; i < probe->hops.count; i++) {
		if (!hops[i].seen)
			complain("warning: hop %s never had a qdisc", hops[i].name);
	}
}

static bool write_table(const char *path, const struct probe *probe,
			void (*write)(FILE *out, const struct probe *probe))
{
	FILE *out;

	if (!path)
		return true;
	out = open_output(path);
	if (!out)
		return false;
	write(out, probe);
	return close_output(out, path);
}

int main(int argc, char **argv)
{
	struct settings settings = parse_options(argc, argv);
	struct probe probe = { .interval_ms = settings.interval_ms };
	bool done;

	if (!add_targets(&probe, &settings) || !probe_prepare(&probe))
		return EXIT_FAILED;
	stop_signals_catch();
	if (!settings.start_ns)
		settings.start_ns = clock_read_ns(CLOCK_MONOTONIC);
	done = sample_until_end(&probe, settings.start_ns, settings.end_ns);
	stop_signals_done();
	complain_unseen(&probe);
	if (!write_table(settings.flows_path, &probe, write_flows_csv))
		done = false;
	if (!write_table(settings.hops_path, &probe, write_hops_csv))
		done = false;
	return done ? EXIT_DONE : EXIT_FAILED;
}

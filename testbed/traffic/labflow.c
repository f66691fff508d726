// SPDX-License-Identifier: GPL-2.0-only
/*
 * labflow - one flow, bulk or of a constant rate, or a sink for any number of them, for experiments
 * whose clock may be virtual: it blocks, never spins, reads the clock as
 * rarely as it can and makes the fewest system calls it can.
 */
#include "labflow.h"
#include "common.h"

#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_LOWAT_BYTES (256 << 10)
#define REPEATS_MAX 1000000

static const struct transport *const transports[] = { &transport_tcp, &transport_mptcp,
						      &transport_sctp, &transport_udp };

static const char usage[] =
	"usage: labflow sink --port N [options]\n"
	"       labflow send --connect ADDR --port N (--duration-s D | --bytes N) [options]\n"
	"\n"
	"sink: accept connections, discard their bytes, write one JSON line for each\n"
	"that ends; SIGTERM ends it and reports those still open.\n"
	"  --bind ADDR        IPv4 address to listen on (default: all)\n"
	"  --port N           port to listen on\n"
	"  --lowat-bytes N    tcp: receive low watermark, bytes (default 262144)\n"
	"  --reply-after N    tcp, sctp: answer with a byte after N of them, again and again\n"
	"  --rcvbuf N         SO_RCVBUF, bytes (the kernel doubles it; sctp: default\n"
	"                     8388608, which is then the receive window)\n"
	"  --ready-fd N       write \"ready\\n\" to this open descriptor once listening\n"
	"\n"
	"send: connect at the start time, send zeroes, write one JSON object.\n"
	"  --connect ADDR     the sink's IPv4 address\n"
	"  --port N           the sink's port\n"
	"  --source ADDR      local IPv4 address (default: the route's)\n"
	"  --source-port N    local port (default: any)\n"
	"  --algorithm NAME   congestion control (default: the route's or the sysctl's)\n"
	"  --start-at-s T     CLOCK_MONOTONIC time to connect at, seconds (default: now)\n"
	"  --duration-s D     reset the connection at T + D, seconds\n"
	"  --bytes N          stop when N bytes are acknowledged\n"
	"  --repeats N        tcp, sctp: N requests of --bytes, each when the sink has answered the\n"
	"                     one before (its --reply-after) and --pause-s has passed\n"
	"  --pause-s S        between an answer and the next request, seconds (default 0)\n"
	"  --mss N            largest segment, bytes of payload and TCP options;\n"
	"                     udp: payload of a datagram (default 1472); sctp: of a\n"
	"                     chunk (default 1440)\n"
	"  --rate-mbps R      udp: rate in Mb/s, counting whole Ethernet frames\n"
	"  --on-s S, --off-s S  udp: bursts and gaps of Pareto lengths with these means\n"
	"  --seed N           udp: which lengths\n"
	"  --sndbuf N         SO_SNDBUF, bytes (the kernel doubles it)\n"
	"  --name NAME        the flow's name in the JSON (default: \"flow\")\n"
	"\n"
	"both:\n"
	"  --transport NAME   tcp (default), mptcp (subflows as ip mptcp says), sctp, or\n"
	"                     udp: a constant rate that nothing slows down; its sink\n"
	"                     counts datagrams until it is ended\n"
	"  --json FILE        where the JSON goes; - is standard output (default)\n"
	"\n"
	"Times in the JSON are seconds of CLOCK_MONOTONIC. Exit 0: done; 1: the flow\n"
	"or the sink failed; 2: bad options.\n";

enum option_code {
	OPT_BIND = 1,
	OPT_CONNECT,
	OPT_PORT,
	OPT_SOURCE,
	OPT_SOURCE_PORT,
	OPT_TRANSPORT,
	OPT_ALGORITHM,
	OPT_START_AT_S,
	OPT_DURATION_S,
	OPT_BYTES,
	OPT_REPEATS,
	OPT_PAUSE_S,
	OPT_REPLY_AFTER,
	OPT_MSS,
	OPT_RATE_MBPS,
	OPT_ON_S,
	OPT_OFF_S,
	OPT_SEED,
	OPT_SNDBUF,
	OPT_NAME,
	OPT_JSON,
	OPT_LOWAT_BYTES,
	OPT_RCVBUF,
	OPT_READY_FD,
	OPT_HELP,
};

static const struct option sink_long_options[] = {
	{ "bind", required_argument, NULL, OPT_BIND },
	{ "port", required_argument, NULL, OPT_PORT },
	{ "transport", required_argument, NULL, OPT_TRANSPORT },
	{ "json", required_argument, NULL, OPT_JSON },
	{ "lowat-bytes", required_argument, NULL, OPT_LOWAT_BYTES },
	{ "reply-after", required_argument, NULL, OPT_REPLY_AFTER },
	{ "rcvbuf", required_argument, NULL, OPT_RCVBUF },
	{ "ready-fd", required_argument, NULL, OPT_READY_FD },
	{ "help", no_argument, NULL, OPT_HELP },
	{ 0 },
};

static const struct option send_long_options[] = {
	{ "connect", required_argument, NULL, OPT_CONNECT },
	{ "port", required_argument, NULL, OPT_PORT },
	{ "source", required_argument, NULL, OPT_SOURCE },
	{ "source-port", required_argument, NULL, OPT_SOURCE_PORT },
	{ "transport", required_argument, NULL, OPT_TRANSPORT },
	{ "algorithm", required_argument, NULL, OPT_ALGORITHM },
	{ "start-at-s", required_argument, NULL, OPT_START_AT_S },
	{ "duration-s", required_argument, NULL, OPT_DURATION_S },
	{ "bytes", required_argument, NULL, OPT_BYTES },
	{ "repeats", required_argument, NULL, OPT_REPEATS },
	{ "pause-s", required_argument, NULL, OPT_PAUSE_S },
	{ "mss", required_argument, NULL, OPT_MSS },
	{ "rate-mbps", required_argument, NULL, OPT_RATE_MBPS },
	{ "on-s", required_argument, NULL, OPT_ON_S },
	{ "off-s", required_argument, NULL, OPT_OFF_S },
	{ "seed", required_argument, NULL, OPT_SEED },
	{ "sndbuf", required_argument, NULL, OPT_SNDBUF },
	{ "name", required_argument, NULL, OPT_NAME },
	{ "json", required_argument, NULL, OPT_JSON },
	{ "help", no_argument, NULL, OPT_HELP },
	{ 0 },
};

static const struct transport *option_transport(const char *name)
{
	char known[128] = "";

	for (size_t i = 0; i < sizeof(transports) / sizeof(transports[0]); i++) {
		if (!strcmp(transports[i]->name, name))
			return transports[i];
		strncat(known, " ", sizeof(known) - strlen(known) - 1);
		strncat(known, transports[i]->name, sizeof(known) - strlen(known) - 1);
	}
	bad_options("--transport '%s' does not exist; there is:%s", name, known);
}

static in_port_t option_port(const char *option, const char *text)
{
	return htons((uint16_t)option_number(option, text, 1, UINT16_MAX));
}

static const char *option_algorithm(const char *text)
{
	if (!*text || strlen(text) >= ALGORITHM_NAME_MAX)
		bad_options("--algorithm takes a name of 1 to %d characters, not '%s'",
			    ALGORITHM_NAME_MAX - 1, text);
	return text;
}

static int next_option(int argc, char **argv, const struct option *options)
{
	int code = getopt_long(argc, argv, ":", options, NULL);

	if (code == ':' || code == '?')
		bad_getopt(code, argv);
	if (code == OPT_HELP) {
		fputs(usage, stdout);
		exit(EXIT_DONE);
	}
	if (code == -1 && optind < argc)
		bad_options("unexpected argument '%s'; see --help", argv[optind]);
	return code;
}

static void require(bool given, const char *mode, const char *what)
{
	if (!given)
		bad_options("%s needs %s; see --help", mode, what);
}

static int finish(int code, FILE *report, const char *path)
{
	return close_output(report, path) ? code : EXIT_FAILED;
}

static int main_sink(int argc, char **argv)
{
	struct sink_options options = {
		.transport = &transport_tcp,
		.local = { .sin_family = AF_INET },
		.lowat_bytes = DEFAULT_LOWAT_BYTES,
	};
	const char *path = "-";
	int ready_fd = -1;
	FILE *report;
	int code;

	while ((code = next_option(argc, argv, sink_long_options)) != -1) {
		if (code == OPT_BIND)
			options.local.sin_addr = option_address("--bind", optarg);
		else if (code == OPT_PORT)
			options.local.sin_port = option_port("--port", optarg);
		else if (code == OPT_TRANSPORT)
			options.transport = option_transport(optarg);
		else if (code == OPT_LOWAT_BYTES)
			options.lowat_bytes = (int)option_number("--lowat-bytes", optarg, 1,
								 INT_MAX);
		else if (code == OPT_REPLY_AFTER)
			options.reply_after_bytes = option_number("--reply-after", optarg, 1,
								  INT64_MAX);
		else if (code == OPT_RCVBUF)
			options.rcvbuf_bytes = (int)option_number("--rcvbuf", optarg, 1,
								  INT_MAX / 2);
		else if (code == OPT_READY_FD)
			ready_fd = (int)option_number("--ready-fd", optarg, 0, INT_MAX);
		else
			path = optarg;
	}
	require(options.local.sin_port, "sink", "--port");
	report = open_output(path);
	if (!report)
		return EXIT_FAILED;
	return finish(sink_run(&options, ready_fd, report), report, path);
}

/* Options that say when; false if CODE is not one of them. */
static bool schedule_option(int code, struct send_schedule *schedule)
{
	if (code == OPT_START_AT_S)
		schedule->start_ns = option_seconds_ns("--start-at-s", optarg);
	else if (code == OPT_DURATION_S)
		schedule->duration_ns = option_seconds_ns("--duration-s", optarg);
	else
		return false;
	return true;
}

static void flow_option(int code, struct flow_options *options)
{
	if (code == OPT_CONNECT)
		options->peer.sin_addr = option_address("--connect", optarg);
	else if (code == OPT_PORT)
		options->peer.sin_port = option_port("--port", optarg);
	else if (code == OPT_SOURCE)
		options->local.sin_addr = option_address("--source", optarg);
	else if (code == OPT_SOURCE_PORT)
		options->local.sin_port = option_port("--source-port", optarg);
	else if (code == OPT_TRANSPORT)
		options->transport = option_transport(optarg);
	else if (code == OPT_ALGORITHM)
		options->algorithm = option_algorithm(optarg);
	else if (code == OPT_BYTES)
		options->bytes = option_number("--bytes", optarg, 1, INT64_MAX);
	else if (code == OPT_REPEATS)
		options->repeats = (uint32_t)option_number("--repeats", optarg, 1, REPEATS_MAX);
	else if (code == OPT_PAUSE_S)
		options->pause_ns = option_seconds_ns("--pause-s", optarg);
	else if (code == OPT_MSS)
		options->mss_bytes = (int)option_number("--mss", optarg, 88, 32767);
	else if (code == OPT_RATE_MBPS)
		options->rate_bps = option_rate_bps("--rate-mbps", optarg);
	else if (code == OPT_ON_S)
		options->on_ns = option_seconds_ns("--on-s", optarg);
	else if (code == OPT_OFF_S)
		options->off_ns = option_seconds_ns("--off-s", optarg);
	else if (code == OPT_SEED)
		options->seed = option_number("--seed", optarg, 0, INT64_MAX);
	else if (code == OPT_SNDBUF)
		options->sndbuf_bytes = (int)option_number("--sndbuf", optarg, 1, INT_MAX / 2);
	else if (code == OPT_NAME)
		options->name = optarg;
}

static int main_send(int argc, char **argv)
{
	struct flow_options options = {
		.transport = &transport_tcp,
		.name = "flow",
		.local = { .sin_family = AF_INET },
		.peer = { .sin_family = AF_INET },
	};
	struct send_schedule schedule = { 0 };
	const char *path = "-";
	FILE *report;
	int code;

	while ((code = next_option(argc, argv, send_long_options)) != -1) {
		if (code == OPT_JSON)
			path = optarg;
		else if (!schedule_option(code, &schedule))
			flow_option(code, &options);
	}
	require(options.peer.sin_addr.s_addr, "send", "--connect with the sink's address");
	require(options.peer.sin_port, "send", "--port");
	require(!options.on_ns == !options.off_ns, "send", "--on-s with --off-s, both above 0");
	if (options.transport != &transport_tcp && options.transport != &transport_sctp)
		require(!options.repeats, "send", "--transport tcp or sctp for --repeats");
	require(options.bytes || !options.repeats, "send", "--bytes with --repeats");
	require(options.repeats || !options.pause_ns, "send", "--repeats with --pause-s");
	require(options.bytes || schedule.duration_ns, "send",
		"--duration-s above 0, --bytes, or both");
	report = open_output(path);
	if (!report)
		return EXIT_FAILED;
	return finish(send_run(&options, &schedule, report), report, path);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	opterr = 0;
	if (!strcmp(mode, "sink"))
		return main_sink(argc - 1, argv + 1);
	if (!strcmp(mode, "send"))
		return main_send(argc - 1, argv + 1);
	if (!strcmp(mode, "--help") || !strcmp(mode, "-h")) {
		fputs(usage, stdout);
		return EXIT_DONE;
	}
	bad_options("the first argument is 'sink' or 'send', not '%s'; see --help", mode);
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * tfrc-send - stream a file, standard input or made-up media over UDP, at the
 * rate that TFRC allows.
 *
 * One loop: send what is due (outlet.h), then sleep in ppoll() until the next
 * packet, the no-feedback timer, the next line of output, feedback or
 * data, whichever comes first.
 */
#include "common.h"
#include "outlet.h"
#include "source.h"
#include "tfrc_testbed.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define PAYLOAD_MAX	(TFRC_PACKET_MAX_BYTES - TFRC_DATA_HEADER_BYTES)
#define PAYLOAD_DEFAULT 1400
#define SOCKET_BYTES	(4 << 20)
/* Packets closer than this leave together: no timer is finer. */
#define NAP_NS	     250000
#define LEAD_PACKETS 64
#define PART_BYTES   4096 /* of a path */
#define FIN_TRIES    8
#define FIN_WAIT_NS  (NS_PER_S / 2)
#define GREETING_NS  (NS_PER_S / 5)
#define TIMEOUT_NS   (30 * NS_PER_S)
#define REFUSED_NS   NS_PER_S /* a receiver that has answered may be restarting */
/* Answers are taken in portions, so that a flood of them holds up nothing else.
 */
#define RECEIVE_BATCH  16
#define RECEIVE_ROUNDS 16

static const char *const algorithms[] = {"tfrc", "uddj", "wireless", NULL};
static const char *const laws[] = {"ease", "mark", "classify", NULL};

struct options {
	const char *host, *port, *name, *json, *samples, *rate_file;
	int family;
	uint16_t source_port;
	size_t payload_bytes;
	struct source source;
	const char *file;
	tfrc_time start_at, duration, interval, samples_from, timeout;
	bool quiet, verbose;
	unsigned int sources; /* options that say where data comes from */
	bool has_law, has_samples_from, has_duration;
	struct tfrc_sender_config config;
};

/* What the last line of output was about. */
struct mark {
	tfrc_time at;
	struct tfrc_sender_info info;
};

/* An interval of the results. */
struct record {
	tfrc_time from, to;
	uint64_t sent, arrived; /* bytes of data */
	uint64_t lost_congestion, lost_random;
	double rate, loss_event_rate; /* bytes/s, p; at its end */
	tfrc_time rtt;
};

/* Whether anybody answers. */
struct answers {
	uint64_t feedbacks;    /* so far */
	uint64_t packets;      /* sent, when the newest came */
	tfrc_time silent_from; /* since when others wait; TFRC_NEVER: none do */
	tfrc_time refused_from; /* the host says that nobody listens */
};

struct run {
	const struct options *options;
	struct source source;
	struct tfrc_sender *sender;
	struct outlet outlet;
	tfrc_time lead;	      /* how far ahead packets are handed over */
	tfrc_time start, end; /* END: TFRC_NEVER without a time limit */
	tfrc_time next_output, next_sample;
	struct mark last;
	struct answers answers;
	FILE *samples, *json;
	bool lines;
	struct record *records;
	size_t record_count;
	bool stop;   /* something failed here: the end is told */
	bool dead;   /* nobody to tell it to */
	bool ending; /* no more data: the end is told */
	unsigned int fin_tries;
	tfrc_time fin_at;
	tfrc_time greeting_at; /* TFRC_NEVER: there is none to be sent */
	uint8_t (*packets)[TFRC_PACKET_MAX_BYTES];
	char error[256];
};

static const char usage[] =
	"usage: tfrc-send [options] HOST PORT\n"
	"\n"
	"Send standard input, or what one of these says, to a tfrc-recv:\n"
	"  --file PATH          a file\n"
	"  --endless            data without end, as fast as allowed\n"
	"  --cbr RATE           a constant rate, if it is allowed\n"
	"  --vbr RATE           frames like video's, of this mean rate\n"
	"\n"
	"  --algorithm NAME     tfrc (default), uddj, or wireless (testbeds "
	"only)\n"
	"  --law NAME           uddj: ease (default), mark or classify\n"
	"  --max-rate RATE      never faster, headers included\n"
	"  --payload-bytes N    data in a packet (default 1400; at most "
	"65455)\n"
	"  --bytes N            stop after so many bytes of data\n"
	"  --duration S         stop after so many seconds (default 0: no "
	"limit)\n"
	"  --damping            RFC 5348, 4.5: less oscillation\n"
	"  --small-packets      RFC 4828: for small packets, at most one in 10 "
	"ms\n"
	"  -4, -6               IPv4 or IPv6 only\n"
	"  --source-port N      local port (default: any)\n"
	"  --timeout S          give up after so long without an answer "
	"(default 30)\n"
	"\n"
	"  --interval S         seconds from line to line (default 1; 0: "
	"none)\n"
	"  --quiet              no lines, and no intervals in results\n"
	"  --verbose            say how packets leave\n"
	"  --json PATH          results as a JSON object; - is standard "
	"output,\n"
	"                       and then there are no lines\n"
	"  --rate-file PATH     keep the allowed rate there, bit/s, for an "
	"encoder\n"
	"  --name NAME          what results call this flow\n"
	"  --start-at-s T       CLOCK_MONOTONIC time to start at\n"
	"  --samples PATH       a time series (CSV) at each interval ...\n"
	"  --samples-from-s T   ... counted from this CLOCK_MONOTONIC time\n"
	"  -h, --help           this text; --version\n"
	"\n"
	"RATE is in bit/s: 500k, 4M, 1.5G. SIGINT and SIGTERM end the stream "
	"in order.\n";

enum option_code {
	OPT_FILE = 256,
	OPT_ENDLESS,
	OPT_CBR,
	OPT_VBR,
	OPT_ALGORITHM,
	OPT_LAW,
	OPT_MAX_RATE,
	OPT_PAYLOAD,
	OPT_BYTES,
	OPT_DURATION,
	OPT_DAMPING,
	OPT_SMALL,
	OPT_SOURCE_PORT,
	OPT_INTERVAL,
	OPT_QUIET,
	OPT_VERBOSE,
	OPT_JSON,
	OPT_RATE_FILE,
	OPT_NAME,
	OPT_START,
	OPT_SAMPLES,
	OPT_SAMPLES_FROM,
	OPT_TIMEOUT,
};

static const struct option long_options[] = {
	{"file", required_argument, NULL, OPT_FILE},
	{"endless", no_argument, NULL, OPT_ENDLESS},
	{"cbr", required_argument, NULL, OPT_CBR},
	{"vbr", required_argument, NULL, OPT_VBR},
	{"algorithm", required_argument, NULL, OPT_ALGORITHM},
	{"law", required_argument, NULL, OPT_LAW},
	{"max-rate", required_argument, NULL, OPT_MAX_RATE},
	{"payload-bytes", required_argument, NULL, OPT_PAYLOAD},
	{"bytes", required_argument, NULL, OPT_BYTES},
	{"duration", required_argument, NULL, OPT_DURATION},
	{"damping", no_argument, NULL, OPT_DAMPING},
	{"small-packets", no_argument, NULL, OPT_SMALL},
	{"source-port", required_argument, NULL, OPT_SOURCE_PORT},
	{"interval", required_argument, NULL, OPT_INTERVAL},
	{"quiet", no_argument, NULL, OPT_QUIET},
	{"verbose", no_argument, NULL, OPT_VERBOSE},
	{"json", required_argument, NULL, OPT_JSON},
	{"rate-file", required_argument, NULL, OPT_RATE_FILE},
	{"name", required_argument, NULL, OPT_NAME},
	{"start-at-s", required_argument, NULL, OPT_START},
	{"samples", required_argument, NULL, OPT_SAMPLES},
	{"samples-from-s", required_argument, NULL, OPT_SAMPLES_FROM},
	{"timeout", required_argument, NULL, OPT_TIMEOUT},
	{"help", no_argument, NULL, OPT_HELP},
	{"version", no_argument, NULL, OPT_VERSION},
	{NULL, 0, NULL, 0},
};

static void set_source(struct source *source, enum source_kind kind,
		       double bits_per_s)
{
	source->kind = kind;
	source->rate = bits_per_s / 8;
}

static bool is_source(int code)
{
	return code == OPT_FILE || code == OPT_ENDLESS || code == OPT_CBR ||
	       code == OPT_VBR;
}

static void take_data_option(struct options *o, int code)
{
	o->sources += is_source(code);
	switch (code) {
	case OPT_FILE:
		o->file = optarg;
		set_source(&o->source, SOURCE_FD, 0);
		break;
	case OPT_ENDLESS:
		set_source(&o->source, SOURCE_ENDLESS, 0);
		break;
	case OPT_CBR:
		set_source(&o->source, SOURCE_CBR,
			   option_rate("--cbr", optarg));
		break;
	case OPT_VBR:
		set_source(&o->source, SOURCE_VBR,
			   option_rate("--vbr", optarg));
		break;
	case OPT_BYTES:
		o->source.limit =
			option_number("--bytes", optarg, 1, INT64_MAX);
		break;
	case OPT_PAYLOAD:
		o->payload_bytes = option_number("--payload-bytes", optarg, 1,
						 PAYLOAD_MAX);
		break;
	default:
		break;
	}
}

static void take_output_option(struct options *o, int code)
{
	switch (code) {
	case OPT_INTERVAL:
		o->interval = option_interval("--interval", optarg);
		break;
	case OPT_QUIET:
		o->quiet = true;
		break;
	case OPT_VERBOSE:
		o->verbose = true;
		break;
	case OPT_JSON:
		o->json = optarg;
		break;
	case OPT_RATE_FILE:
		o->rate_file = optarg;
		break;
	case OPT_NAME:
		o->name = option_name("--name", optarg);
		break;
	case OPT_SAMPLES:
		o->samples = optarg;
		break;
	case OPT_SAMPLES_FROM:
		o->samples_from = option_seconds("--samples-from-s", optarg);
		o->has_samples_from = true;
		break;
	default:
		break;
	}
}

static void take_option(struct options *o, int code)
{
	switch (code) {
	case OPT_ALGORITHM:
		o->config.discrimination =
			(enum tfrc_discrimination)option_choice(
				"--algorithm", optarg, algorithms);
		break;
	case OPT_LAW:
		o->config.uddj_law = (enum tfrc_uddj_law)option_choice(
			"--law", optarg, laws);
		o->has_law = true;
		break;
	case OPT_TIMEOUT:
		o->timeout = option_seconds("--timeout", optarg);
		break;
	case OPT_MAX_RATE:
		o->config.max_rate = option_rate("--max-rate", optarg) / 8;
		break;
	case OPT_DAMPING:
		o->config.options |= TFRC_DAMPING;
		break;
	case OPT_SMALL:
		o->config.options |= TFRC_SMALL_PACKETS;
		break;
	case OPT_DURATION:
		o->duration = option_seconds("--duration", optarg);
		o->has_duration = true;
		break;
	case OPT_START:
		o->start_at = option_seconds("--start-at-s", optarg);
		break;
	case OPT_SOURCE_PORT:
		o->source_port = (uint16_t)option_number("--source-port",
							 optarg, 1, 65535);
		break;
	case '4':
	case '6':
		o->family = option_family(o->family, code);
		break;
	default:
		take_data_option(o, code);
		take_output_option(o, code);
	}
}

static bool is_stdout(const char *path)
{
	return path && !strcmp(path, "-");
}

/* Options that do not go together. */
static void check_options(struct options *o)
{
	if (o->sources > 1)
		bad_options("give one of --file, --endless, --cbr and --vbr");
	if (o->has_law && o->config.discrimination != TFRC_LOSS_UDDJ)
		bad_options("--law is for --algorithm uddj");
	if (o->has_samples_from && !o->samples)
		bad_options("--samples-from-s needs --samples");
	if (!o->interval && o->samples)
		bad_options("--samples needs an --interval above 0");
	if (!o->interval && o->rate_file)
		bad_options("--rate-file needs an --interval above 0");
	if (is_stdout(o->rate_file))
		bad_options("--rate-file takes a file: it is replaced");
	if (is_stdout(o->json) && is_stdout(o->samples))
		bad_options("--json and --samples cannot both be standard "
			    "output");
	if (!o->timeout)
		bad_options("--timeout takes more than 0 seconds");
}

static void read_options(struct options *o, int argc, char **argv)
{
	int code;

	while ((code = next_option(argc, argv, long_options, usage)) != -1)
		take_option(o, code);
	if (argc - optind != 2)
		bad_options("give a host and a port; see --help");
	o->host = argv[optind];
	o->port = option_port(argv[optind + 1]);
	check_options(o);
	if (o->source.kind == SOURCE_ENDLESS && !o->has_duration &&
	    !o->source.limit)
		complain("no --duration and no --bytes: this goes on until it "
			 "is interrupted");
}

/* --- the socket ---------------------------------------------------------- */

static int bind_port(int fd, int family, uint16_t port)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET,
				 .sin_port = htons(port)};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6,
				  .sin6_port = htons(port)};

	if (!port)
		return 0;
	return family == AF_INET ? bind(fd, (struct sockaddr *)&v4, sizeof(v4))
				 : bind(fd, (struct sockaddr *)&v6, sizeof(v6));
}

static int open_socket(const struct options *o)
{
	struct addrinfo *found = resolve(o->host, o->port, o->family, false);
	int fd = -1;

	for (const struct addrinfo *at = found; at && fd < 0;
	     at = at->ai_next) {
		fd = socket(at->ai_family,
			    SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (fd >= 0 && (bind_port(fd, at->ai_family, o->source_port) ||
				connect(fd, at->ai_addr, at->ai_addrlen))) {
			int error = errno;

			close(fd);
			errno = error;
			fd = -1;
		}
	}
	freeaddrinfo(found);
	if (fd < 0)
		fail("cannot reach %s port %s: %s", o->host, o->port,
		     strerror(errno));
	socket_buffers(fd, SOCKET_BYTES);
	return fd;
}

static uint16_t local_port(int fd)
{
	struct sockaddr_in6 address; /* the port is where IPv4's is */
	socklen_t length = sizeof(address);

	return getsockname(fd, (struct sockaddr *)&address, &length)
		       ? 0
		       : ntohs(address.sin6_port);
}

/* --- what goes wrong ------------------------------------------------------ */

/* Something failed; the first of it is what is told in the end. */
static void note_error(struct run *run, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void note_error(struct run *run, const char *format, ...)
{
	va_list arguments;

	if (run->error[0])
		return;
	va_start(arguments, format);
	vsnprintf(run->error, sizeof(run->error), format, arguments);
	va_end(arguments);
}

/* What is written goes nowhere: the stream ends in order. */
static void cannot_write(struct run *run, const char *what)
{
	note_error(run, "cannot write %s: %s", what, strerror(errno));
	run->stop = true;
}

static void give_up(struct run *run, const char *why)
{
	note_error(run, "%s", why);
	run->dead = true;
}

/* Is there anybody at the other end? */
static void watch_answers(struct run *run, tfrc_time now)
{
	struct answers *a = &run->answers;
	struct tfrc_sender_info info;

	tfrc_sender_get_info(run->sender, &info, sizeof(info));
	if (info.feedbacks != a->feedbacks)
		*a = (struct answers){.feedbacks = info.feedbacks,
				      .packets = info.packets_sent,
				      .silent_from = TFRC_NEVER,
				      .refused_from = TFRC_NEVER};
	else if (run->outlet.refused && a->refused_from == TFRC_NEVER)
		a->refused_from = now;
	if (info.packets_sent > a->packets && a->silent_from == TFRC_NEVER)
		a->silent_from = now;
	run->outlet.refused = false;
	if (info.rejected)
		give_up(run, "the receiver does not know this stream: was it "
			     "restarted?");
	else if (!a->feedbacks && a->refused_from != TFRC_NEVER)
		give_up(run, "nobody listens there: Connection refused");
	else if (a->refused_from != TFRC_NEVER &&
		 now - a->refused_from >= REFUSED_NS)
		give_up(run, "the receiver has gone: Connection refused");
	else if (a->silent_from != TFRC_NEVER &&
		 now - a->silent_from >= run->options->timeout)
		give_up(run, a->feedbacks ? "the receiver answers no more"
					  : "the receiver never answered");
}

/* --- output -------------------------------------------------------------- */

static double mbps(double bytes, tfrc_time in)
{
	return in > 0 ? bytes * 8e-6 / ((double)in * 1e-9) : 0;
}

static void print_line(struct run *run, tfrc_time now,
		       const struct tfrc_sender_info *info)
{
	const struct tfrc_sender_info *last = &run->last.info;
	uint64_t congestion =
		info->packets_lost_congestion - last->packets_lost_congestion;
	uint64_t at_random =
		info->packets_lost_random - last->packets_lost_random;

	printf("%8.2f-%-8.2f s  sent %9.3f  arrived %9.3f  allowed %9.3f "
	       "Mbit/s  p %.6f  RTT %8.3f ms"
	       "  lost %" PRIu64 " + %" PRIu64 " random\n",
	       (double)(run->last.at - run->start) * 1e-9,
	       (double)(now - run->start) * 1e-9,
	       mbps((double)(info->payload_sent - last->payload_sent),
		    now - run->last.at),
	       mbps((double)(info->payload_arrived - last->payload_arrived),
		    now - run->last.at),
	       info->rate * 8e-6, info->loss_event_rate,
	       (double)info->rtt_ns * 1e-6, congestion, at_random);
	if (fflush(stdout))
		cannot_write(run, "to standard output");
}

static void add_record(struct run *run, tfrc_time now,
		       const struct tfrc_sender_info *info)
{
	const struct tfrc_sender_info *last = &run->last.info;
	size_t count = run->record_count;

	/* room doubles: it is full at each power of two */
	if (!(count & (count - 1))) {
		struct record *more = realloc(
			run->records, (count ? 2 * count : 1) * sizeof(*more));

		if (!more)
			fail("out of memory");
		run->records = more;
	}
	run->records[run->record_count++] = (struct record){
		.from = run->last.at,
		.to = now,
		.sent = info->payload_sent - last->payload_sent,
		.arrived = info->payload_arrived - last->payload_arrived,
		.lost_congestion = info->packets_lost_congestion -
				   last->packets_lost_congestion,
		.lost_random =
			info->packets_lost_random - last->packets_lost_random,
		.rate = info->rate,
		.loss_event_rate = info->loss_event_rate,
		.rtt = info->rtt_ns,
	};
}

static void write_records(const struct run *run, FILE *out)
{
	fputs(",\"intervals\":[", out);
	for (size_t i = 0; i < run->record_count; i++) {
		const struct record *r = &run->records[i];

		fprintf(out,
			"%s{\"from_s\":%.6f,\"to_s\":%.6f,\"bytes_sent\":"
			"%" PRIu64 ",\"bytes_acked\":%" PRIu64
			",\"lost_congestion\":%" PRIu64
			",\"lost_random\":%" PRIu64
			",\"rate_mbps\":%.6f,\"loss_event_rate\":%.9f"
			",\"srtt_us\":%lld}",
			i ? "," : "", (double)(r->from - run->start) * 1e-9,
			(double)(r->to - run->start) * 1e-9, r->sent,
			r->arrived, r->lost_congestion, r->lost_random,
			r->rate * 8e-6, r->loss_event_rate,
			(long long)r->rtt / 1000);
	}
	fputc(']', out);
}

/* What takes the place of --rate-file; PART gets its name. */
static FILE *open_rate(const struct options *o, char *part, size_t part_bytes)
{
	if ((size_t)snprintf(part, part_bytes, "%s.part", o->rate_file) <
	    part_bytes)
		return fopen(part, "we");
	errno = ENAMETOOLONG;
	return NULL;
}

/* Can it be written? */
static void try_rate(const struct options *o)
{
	char part[PART_BYTES];
	FILE *file = open_rate(o, part, sizeof(part));

	if (!file)
		fail("cannot write '%s': %s", o->rate_file, strerror(errno));
	fclose(file);
	unlink(part);
}

/*
 * Replaced, not overwritten: who reads it never sees half of it. And not before
 * the first answer, as that is when the rate begins to mean something.
 */
static void write_rate(struct run *run, const struct tfrc_sender_info *info)
{
	double most = run->options->config.max_rate;
	double rate = most > 0 && most < info->rate ? most : info->rate;
	char part[PART_BYTES];
	FILE *file = open_rate(run->options, part, sizeof(part));

	if (file)
		fprintf(file, "%.0f\n", rate * 8);
	if (!file || !close_output(file) ||
	    rename(part, run->options->rate_file))
		cannot_write(run, "--rate-file");
}

/* The columns of the lab's flows.csv. */
static const char samples_header[] =
	"time_s,flow,algorithm,ca_state,cwnd_pkts,ssthresh_pkts,srtt_ms,"
	"rttvar_ms,min_rtt_ms,rto_ms,inflight_pkts,lost_pkts,retransmits,"
	"timeouts,bytes_acked,delivery_rate_mbps,pacing_rate_mbps,cc_kind,"
	"cc_bw_mbps,cc_min_rtt_ms,cc_pacing_gain,cc_cwnd_gain,vegas_rtt_ms,"
	"vegas_minrtt_ms\n";

static void write_sample(struct run *run, const struct tfrc_sender_info *info)
{
	const struct options *o = run->options;
	double window = info->packets_sent
				? info->rate * (double)info->rtt_ns * 1e-9 /
					  (double)(o->payload_bytes +
						   TFRC_DATA_HEADER_BYTES)
				: 0;

	fprintf(run->samples,
		"%.3f,%s,%s,,%.0f,,%.3f,,%.3f,,,%" PRIu64 ",0,%" PRIu64
		",%" PRIu64 ",%.6f,%.6f,tfrc,,,,,,\n",
		(double)(run->next_sample - o->samples_from) * 1e-9, o->name,
		algorithms[o->config.discrimination], window,
		(double)info->rtt_ns * 1e-6, (double)info->rtt_min_ns * 1e-6,
		info->packets_lost_congestion + info->packets_lost_random,
		info->nofeedback_expirations, info->payload_arrived,
		info->rate_received * 8e-6, info->rate * 8e-6);
}

static void output(struct run *run, tfrc_time now)
{
	const struct options *o = run->options;
	struct tfrc_sender_info info;

	if (now < run->next_output && now < run->next_sample)
		return;
	tfrc_sender_get_info(run->sender, &info, sizeof(info));
	for (; run->samples && run->next_sample <= now;
	     run->next_sample += o->interval)
		write_sample(run, &info);
	if (now < run->next_output)
		return;
	if (run->lines)
		print_line(run, now, &info);
	if (run->json && !o->quiet)
		add_record(run, now, &info);
	if (o->rate_file && info.rtt_ns)
		write_rate(run, &info);
	run->last = (struct mark){.at = now, .info = info};
	while (run->next_output <= now)
		run->next_output += o->interval;
}

/* All that may fail does so before the start is waited for. */
static void open_outputs(struct run *run)
{
	const struct options *o = run->options;

	if (o->rate_file)
		try_rate(o);
	if (o->samples)
		run->samples = open_output(o->samples);
	if (o->json)
		run->json = open_output(o->json);
}

static void start_output(struct run *run)
{
	const struct options *o = run->options;

	empty_output(run->samples);
	empty_output(run->json);
	run->next_output = run->next_sample = TFRC_NEVER;
	run->last.at = run->start;
	run->lines = !o->quiet && !is_stdout(o->json) && !is_stdout(o->samples);
	if (!o->interval)
		return;
	if (!o->quiet || o->rate_file)
		run->next_output = run->start + o->interval;
	if (!o->samples)
		return;
	fputs(samples_header, run->samples);
	run->next_sample = o->samples_from;
	while (run->next_sample < run->start)
		run->next_sample += o->interval;
}

static void write_json(const struct run *run, FILE *out, tfrc_time ended)
{
	const struct options *o = run->options;
	struct tfrc_sender_info info;

	tfrc_sender_get_info(run->sender, &info, sizeof(info));
	fputs("{\"name\":", out);
	json_text(out, o->name);
	fprintf(out,
		",\"transport\":\"tfrc\",\"algorithm\":\"%s\",\"source_port\":%"
		"u",
		algorithms[o->config.discrimination],
		local_port(run->outlet.fd));
	json_time(out, "start_s", run->start);
	json_time(out, "end_s", ended);
	json_time(out, "completion_time_s",
		  info.fin_acked && o->source.limit ? ended - run->start : -1);
	fprintf(out, ",\"completed\":%s", info.fin_acked ? "true" : "false");
	fprintf(out,
		",\"bytes_acked\":%" PRIu64 ",\"bytes_sent\":%" PRIu64
		",\"segs_out\":%" PRIu64
		",\"retransmits\":0,\"timeouts\":%" PRIu64,
		info.payload_arrived, info.payload_sent, info.packets_sent,
		info.nofeedback_expirations);
	if (info.rtt_min_ns)
		fprintf(out, ",\"min_rtt_us\":%lld,\"srtt_us\":%lld",
			(long long)info.rtt_min_ns / 1000,
			(long long)info.rtt_ns / 1000);
	else
		fputs(",\"min_rtt_us\":null,\"srtt_us\":null", out);
	fprintf(out,
		",\"rate_mbps\":%.6f,\"loss_event_rate\":%.9f,\"lost_"
		"congestion\":%" PRIu64 ",\"lost_random\":%" PRIu64
		",\"feedbacks\":%" PRIu64 ",\"feedbacks_refused\":%" PRIu64
		",\"send_errors\":%" PRIu64 ",\"error\":",
		info.rate * 8e-6, info.loss_event_rate,
		info.packets_lost_congestion, info.packets_lost_random,
		info.feedbacks, info.feedbacks_refused, run->outlet.errors);
	if (run->error[0])
		json_text(out, run->error);
	else
		fputs("null", out);
	if (!o->quiet)
		write_records(run, out);
	fputs("}\n", out);
}

/* --- sending ------------------------------------------------------------- */

static tfrc_time earlier(tfrc_time a, tfrc_time b)
{
	return a < b ? a : b;
}

/*
 * Lay out one packet that leaves at PACKET->at; false if none is due, nor will
 * be so soon that it may be handed over.
 */
static bool make_packet(struct run *run, tfrc_time now, uint8_t *room,
			struct outlet_packet *packet)
{
	const struct options *o = run->options;
	size_t bytes = source_ready(&run->source, o->payload_bytes);
	tfrc_time due = tfrc_sender_next_send(run->sender);
	bool more;

	if (!bytes || due > now + run->lead)
		return false;
	packet->at = due > now ? due : now;
	source_take(&run->source, room + TFRC_DATA_HEADER_BYTES, bytes);
	more = source_ready(&run->source, o->payload_bytes) > 0;
	if (tfrc_sender_packet(run->sender, packet->at, bytes,
			       more ? TFRC_MORE : 0, room))
		fail("the clock says what cannot be");
	packet->data = (struct iovec){
		.iov_base = room, .iov_len = TFRC_DATA_HEADER_BYTES + bytes};
	return true;
}

/*
 * So little that no answer can be missed before a packet has left, and that fq
 * has room: it keeps a hundred packets of a flow.
 */
static tfrc_time lead_of(const struct run *run)
{
	struct tfrc_sender_info info;
	double packets_s;

	if (!run->outlet.lead_ns)
		return 0;
	tfrc_sender_get_info(run->sender, &info, sizeof(info));
	packets_s =
		LEAD_PACKETS *
		(double)(run->options->payload_bytes + TFRC_DATA_HEADER_BYTES) /
		info.rate;
	if (packets_s < 1e-9 * (double)run->outlet.lead_ns)
		return earlier((tfrc_time)(packets_s * NS_PER_S),
			       info.rtt_ns / 4);
	return earlier(run->outlet.lead_ns, info.rtt_ns / 4);
}

/*
 * A receiver wants to hear once more from who began, before it writes what
 * came. Where there is nothing to send for long, that is a packet without data.
 */
static void send_greeting(struct run *run, tfrc_time now)
{
	uint8_t room[TFRC_DATA_HEADER_BYTES];
	struct outlet_packet packet = {.data = {room, sizeof(room)}};
	struct tfrc_sender_info info;

	tfrc_sender_get_info(run->sender, &info, sizeof(info));
	if (!info.challenged)
		run->greeting_at = TFRC_NEVER;
	else if (run->greeting_at == TFRC_NEVER)
		run->greeting_at = now;
	if (now < run->greeting_at)
		return;
	run->greeting_at = now + GREETING_NS;
	packet.at = now + run->lead;
	if (tfrc_sender_packet(run->sender, packet.at, 0, 0, room))
		fail("the clock says what cannot be");
	outlet_send(&run->outlet, &packet, 1);
}

static void send_due(struct run *run, tfrc_time now)
{
	struct outlet_packet batch[OUTLET_BATCH];
	unsigned int count = 0;

	run->lead = lead_of(run);
	while (count < OUTLET_BATCH &&
	       make_packet(run, now, run->packets[count], &batch[count]))
		count++;
	outlet_send(&run->outlet, batch, count);
	if (!source_ready(&run->source, run->options->payload_bytes))
		send_greeting(run, now);
}

/* The end is a packet without data, told until the receiver says that it knows.
 */
static void send_fin(struct run *run, tfrc_time now)
{
	struct tfrc_sender_info info;
	uint8_t room[TFRC_DATA_HEADER_BYTES];
	struct outlet_packet packet = {.data = {room, sizeof(room)}};

	if (now < run->fin_at)
		return;
	tfrc_sender_get_info(run->sender, &info, sizeof(info));
	/* not before data that was handed over ahead of time */
	packet.at = now + run->lead;
	if (tfrc_sender_packet(run->sender, packet.at, 0, TFRC_FIN, room))
		fail("the clock says what cannot be");
	outlet_send(&run->outlet, &packet, 1);
	run->fin_tries++;
	run->fin_at = now + (info.rtt_ns ? 4 * info.rtt_ns : FIN_WAIT_NS);
}

static void receive(struct run *run)
{
	uint8_t packets[RECEIVE_BATCH][TFRC_FEEDBACK_MAX_BYTES + 1];
	struct mmsghdr batch[RECEIVE_BATCH];
	struct iovec where[RECEIVE_BATCH];
	int count = RECEIVE_BATCH;

	for (unsigned int round = 0;
	     round < RECEIVE_ROUNDS && count == RECEIVE_BATCH; round++) {
		tfrc_time now;

		for (unsigned int i = 0; i < RECEIVE_BATCH; i++) {
			where[i] =
				(struct iovec){.iov_base = packets[i],
					       .iov_len = sizeof(packets[i])};
			batch[i] = (struct mmsghdr){
				.msg_hdr = {.msg_iov = &where[i],
					    .msg_iovlen = 1}};
		}
		count = recvmmsg(run->outlet.fd, batch, RECEIVE_BATCH,
				 MSG_DONTWAIT, NULL);
		if (count < 0 && errno == ECONNREFUSED)
			run->outlet.refused = true;
		now = clock_now();
		for (int i = 0; i < count; i++)
			tfrc_sender_feedback(run->sender, now, packets[i],
					     batch[i].msg_len);
	}
}

/* --- the loop ------------------------------------------------------------ */

static tfrc_time wake_at(const struct run *run, tfrc_time now)
{
	tfrc_time at = earlier(tfrc_sender_next_timer(run->sender), run->end);
	tfrc_time packet =
		source_ready_at(&run->source, now, run->options->payload_bytes);
	tfrc_time due = tfrc_sender_next_send(run->sender);

	at = earlier(at, earlier(run->next_output, run->next_sample));
	at = earlier(at, run->greeting_at);
	if (run->answers.silent_from != TFRC_NEVER)
		at = earlier(at,
			     run->answers.silent_from + run->options->timeout);
	if (run->answers.refused_from != TFRC_NEVER)
		at = earlier(at, run->answers.refused_from + REFUSED_NS);
	if (run->ending)
		return earlier(at, run->fin_at);
	/* handed over half of the lead ahead, so that waking up late is early */
	if (packet < due - run->lead / 2) {
		packet = due - run->lead / 2;
		if (packet > now && packet < now + NAP_NS / 4)
			packet = now + NAP_NS;
	}
	return earlier(at, packet);
}

/* Sleep until something is to be done; is there data to be read? */
static bool wait_for_work(struct run *run, tfrc_time now)
{
	struct pollfd polled[2] = {{.fd = run->outlet.fd, .events = POLLIN},
				   {.fd = run->source.fd, .events = POLLIN}};
	unsigned int count =
		source_wants_read(&run->source) && !run->ending ? 2 : 1;
	tfrc_time at = wake_at(run, now);

	if (wait_polled(polled, count, at == TFRC_NEVER ? at : at - now) <= 0)
		return false;
	if (polled[0].revents)
		receive(run);
	return polled[1].revents != 0;
}

static bool is_over(struct run *run, tfrc_time now)
{
	struct tfrc_sender_info info;

	if (!run->ending && (stop_signal || run->stop || now >= run->end ||
			     source_ended(&run->source))) {
		run->ending = true;
		run->end = TFRC_NEVER;
		run->fin_at = now;
	}
	if (run->dead)
		return true;
	if (!run->ending)
		return false;
	tfrc_sender_get_info(run->sender, &info, sizeof(info));
	return info.fin_acked ||
	       (run->fin_tries >= FIN_TRIES && now >= run->fin_at);
}

static void stream(struct run *run)
{
	bool readable = false;
	tfrc_time now = clock_now();

	for (;;) {
		/* what has been read may have been the last */
		if (source_update(&run->source, now, readable)) {
			note_error(run, "cannot read the data: %s",
				   strerror(errno));
			run->source.eof = true;
		}
		if (is_over(run, now))
			return;
		tfrc_sender_timer(run->sender, now);
		if (run->ending)
			send_fin(run, now);
		else
			send_due(run, now);
		watch_answers(run, now);
		output(run, now);
		readable = wait_for_work(run, now);
		now = clock_now();
	}
}

static int open_data(const struct options *o)
{
	int fd = STDIN_FILENO;

	if (o->source.kind != SOURCE_FD)
		return -1;
	if (o->file)
		fd = open(o->file, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		bad_options("cannot read '%s': %s", o->file, strerror(errno));
	return fd;
}

static void finish(struct run *run)
{
	tfrc_time ended = clock_now();
	struct tfrc_sender_info info;

	if (ended < run->start) /* a signal came before it */
		ended = run->start;
	tfrc_sender_get_info(run->sender, &info, sizeof(info));
	if (!info.fin_acked)
		note_error(run, "%s",
			   info.feedbacks
				   ? "the receiver did not confirm the end"
				   : "the receiver never answered");
	if (run->lines)
		printf("%8.2f-%-8.2f s  sent %9.3f  arrived %9.3f Mbit/s  in "
		       "all, %" PRIu64 " bytes arrived\n",
		       0.0, (double)(ended - run->start) * 1e-9,
		       mbps((double)info.payload_sent, ended - run->start),
		       mbps((double)info.payload_arrived, ended - run->start),
		       info.payload_arrived);
	if (run->lines && fflush(stdout))
		cannot_write(run, "to standard output");
	if (run->samples && !close_output(run->samples))
		cannot_write(run, "--samples");
	if (!run->json)
		return;
	write_json(run, run->json, ended);
	if (!close_output(run->json))
		cannot_write(run, "--json");
}

int main(int argc, char **argv)
{
	struct options options = {.name = "flow",
				  .payload_bytes = PAYLOAD_DEFAULT,
				  .interval = NS_PER_S,
				  .timeout = TIMEOUT_NS};
	struct run run = {.options = &options,
			  .greeting_at = TFRC_NEVER,
			  .answers = {.silent_from = TFRC_NEVER,
				      .refused_from = TFRC_NEVER}};

	stdio_keep();
	read_options(&options, argc, argv);
	stop_signals_catch();
	prctl(PR_SET_TIMERSLACK,
	      1); /* ns: timers are as exact as they can be */
	options.source.fd = open_data(&options);
	options.source.packet_bytes = options.payload_bytes;
	run.source = options.source;
	outlet_open(&run.outlet, open_socket(&options), options.verbose);
	run.packets = calloc(OUTLET_BATCH, sizeof(run.packets[0]));
	random_bytes(&options.config.connection_id,
		     sizeof(options.config.connection_id));
	random_bytes(options.config.key, sizeof(options.config.key));
	options.config.packet_bytes =
		(uint32_t)options.payload_bytes + TFRC_DATA_HEADER_BYTES;
	open_outputs(&run);
	run.start = options.start_at ? options.start_at : clock_now();
	run.end = options.duration ? run.start + options.duration : TFRC_NEVER;
	run.sender = tfrc_sender_new(&options.config, sizeof(options.config),
				     run.start);
	if (!run.sender || !run.packets || source_open(&run.source, run.start))
		fail("out of memory");
	if (options.start_at)
		sleep_until(options.start_at);
	start_output(&run);
	stream(&run);
	finish(&run);
	tfrc_sender_free(run.sender);
	source_close(&run.source);
	free(run.packets);
	free(run.records);
	if (run.error[0])
		complain("%s", run.error);
	return run.error[0] ? EXIT_FAILED : EXIT_DONE;
}

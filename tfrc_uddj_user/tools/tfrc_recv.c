// SPDX-License-Identifier: GPL-2.0-only
/*
 * tfrc-recv - receive what tfrc-send sends, and answer with feedback.
 *
 * One connection at a time; the next may begin when one has ended or has been
 * silent for a while. It begins when its sender has shown that answers reach
 * it: before, its packets wait (waiting.h). Packets are timed by the kernel, so
 * how late this program gets to see them is no part of any delay.
 */
#include "common.h"
#include "local.h"
#include "oracle.h"
#include "tfrc_testbed.h"
#include "waiting.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef UDP_GRO
#define UDP_GRO 104
#endif

#define BATCH 32
/* So many batches, then feedback, timers and signals have their turn. */
#define ROUNDS	     16
#define SOCKET_BYTES (8 << 20)
#define SILENT_NS    (30 * NS_PER_S)
#define LINGER_NS    (2 * NS_PER_S) /* for repetitions of the end */
/* Feedback gets out again when none has failed for so long. */
#define MENDED_NS    NS_PER_S
#define JITTER_SHIFT 16.0 /* RFC 3550, 6.4.1 */

struct options {
	const char *bind, *port, *peer, *output, *json, *oracle;
	int family, ready_fd;
	tfrc_time interval, timeout; /* TIMEOUT 0: none */
	bool quiet, discard, one_off;
};

struct mark {
	tfrc_time at;
	struct tfrc_receiver_info info;
};

/* An interval of the results. */
struct record {
	tfrc_time from, to;
	uint64_t received; /* bytes of data */
	uint64_t lost_congestion, lost_random;
	double loss_event_rate; /* p, at its end */
};

struct connection {
	struct tfrc_receiver *receiver; /* NULL: none */
	uint64_t id;
	struct sockaddr_storage peer;
	socklen_t peer_bytes;
	struct local local;	       /* the address that it sends to */
	tfrc_time begin, newest, over; /* OVER: TFRC_NEVER while it lasts */
	tfrc_time transit, transit_low;
	double jitter_ns;
	struct mark last;
	struct record *records;
	size_t record_count;
	tfrc_time failed; /* the newest feedback that could not be sent */
	bool failing;
};

struct run {
	const struct options *options;
	int fd;
	FILE *output, *json;
	struct oracle *oracle;
	struct connection connection;
	/* of those who have not shown yet that answers reach them */
	struct waiting *waiting;
	uint8_t key[TFRC_KEY_BYTES]; /* what they are to repeat is made of it */
	struct sockaddr_storage unheard; /* the one that was complained of */
	socklen_t unheard_bytes;
	struct addrinfo *peers; /* who may send; NULL: all */
	uint64_t strangers, served;
	tfrc_time patience; /* until then newcomers are not complained of */
	char error[256];       /* output went nowhere: this is the end */
	struct clock_pair now; /* as last read: looks at the clock are what
				  costs in the lab */
	tfrc_time next_output;
	uint8_t (*packets)[TFRC_PACKET_MAX_BYTES + 1];
};

static const char usage[] =
	"usage: tfrc-recv [options] PORT\n"
	"\n"
	"Receive what tfrc-send sends to this port; data goes to standard "
	"output.\n"
	"  --bind ADDR          local address (default: all)\n"
	"  -4, -6               IPv4 or IPv6 only\n"
	"  --peer HOST          take packets from there only\n"
	"  --output PATH        write the data there\n"
	"  --discard            do not write it\n"
	"  --one-off            end after one connection\n"
	"  --timeout S          a connection ends after so long a silence, "
	"too\n"
	"\n"
	"  --interval S         seconds from line to line on standard error "
	"(default 1)\n"
	"  --quiet              no lines, and no intervals in results\n"
	"  --json PATH          results, a JSON object a line for each "
	"connection\n"
	"  --ready-fd N         write \"ready\\n\" to this open descriptor "
	"once listening\n"
	"  --oracle NETNS:DEV   testbeds: packets that come in there got past "
	"all queues\n"
	"  -h, --help           this text; --version\n"
	"\n"
	"SIGINT and SIGTERM end it; a connection that lasts is reported "
	"first.\n";

enum option_code {
	OPT_BIND = 256,
	OPT_OUTPUT,
	OPT_DISCARD,
	OPT_ONE_OFF,
	OPT_TIMEOUT,
	OPT_INTERVAL,
	OPT_QUIET,
	OPT_JSON,
	OPT_READY,
	OPT_ORACLE,
	OPT_PEER,
};

static const struct option long_options[] = {
	{"bind", required_argument, NULL, OPT_BIND},
	{"output", required_argument, NULL, OPT_OUTPUT},
	{"discard", no_argument, NULL, OPT_DISCARD},
	{"one-off", no_argument, NULL, OPT_ONE_OFF},
	{"timeout", required_argument, NULL, OPT_TIMEOUT},
	{"interval", required_argument, NULL, OPT_INTERVAL},
	{"quiet", no_argument, NULL, OPT_QUIET},
	{"json", required_argument, NULL, OPT_JSON},
	{"ready-fd", required_argument, NULL, OPT_READY},
	{"oracle", required_argument, NULL, OPT_ORACLE},
	{"peer", required_argument, NULL, OPT_PEER},
	{"help", no_argument, NULL, OPT_HELP},
	{"version", no_argument, NULL, OPT_VERSION},
	{NULL, 0, NULL, 0},
};

static void take_option(struct options *o, int code)
{
	switch (code) {
	case OPT_BIND:
		o->bind = optarg;
		break;
	case OPT_OUTPUT:
		o->output = optarg;
		break;
	case OPT_DISCARD:
		o->discard = true;
		break;
	case OPT_ONE_OFF:
		o->one_off = true;
		break;
	case OPT_TIMEOUT:
		o->timeout = option_interval("--timeout", optarg);
		break;
	case OPT_INTERVAL:
		o->interval = option_interval("--interval", optarg);
		break;
	case OPT_QUIET:
		o->quiet = true;
		break;
	case OPT_JSON:
		o->json = optarg;
		break;
	case OPT_READY:
		o->ready_fd =
			(int)option_number("--ready-fd", optarg, 0, 65535);
		break;
	case OPT_ORACLE:
		o->oracle = optarg;
		break;
	case OPT_PEER:
		o->peer = optarg;
		break;
	default:
		o->family = option_family(o->family, code);
	}
}

static void read_options(struct options *o, int argc, char **argv)
{
	int code;

	while ((code = next_option(argc, argv, long_options, usage)) != -1)
		take_option(o, code);
	if (argc - optind != 1)
		bad_options("give a port; see --help");
	o->port = option_port(argv[optind]);
	if (o->discard && o->output)
		bad_options("give --output or --discard, not both");
	if (o->json && !strcmp(o->json, "-") && !o->discard &&
	    (!o->output || !strcmp(o->output, "-")))
		bad_options("data and --json cannot both be standard output: "
			    "give --output or --discard");
}

static int open_socket(const struct options *o)
{
	/* an IPv6 socket takes IPv4, too, but with -6 */
	int family = o->family || o->bind ? o->family : AF_INET6, on = 1,
	    only = o->family == AF_INET6;
	struct addrinfo *found = resolve(o->bind, o->port, family, true);
	int fd = socket(found->ai_family,
			SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 && !o->family && !o->bind) { /* a kernel without IPv6 */
		freeaddrinfo(found);
		found = resolve(NULL, o->port, AF_INET, true);
		fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
			    0);
	}
	if (fd >= 0 && found->ai_family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only,
				 sizeof(only));
	if (fd < 0 || bind(fd, found->ai_addr, found->ai_addrlen))
		fail("cannot listen on port %s: %s", o->port, strerror(errno));
	family = found->ai_family;
	freeaddrinfo(found);
	if (setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on)))
		fail("the kernel does not time packets: %s", strerror(errno));
	local_ask(fd, family);
	/* packets that came together in one buffer; a kernel that cannot gives
	 * them one by one */
	(void)setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof(on));
	socket_buffers(fd, SOCKET_BYTES);
	return fd;
}

/* --- output -------------------------------------------------------------- */

/* The first is what is told, after all results. */
static void cannot_write(struct run *run, const char *what)
{
	if (!run->error[0])
		snprintf(run->error, sizeof(run->error), "cannot write %s: %s",
			 what, strerror(errno));
}

static double mbps(uint64_t bytes, tfrc_time in)
{
	return in > 0 ? (double)bytes * 8e3 / (double)in : 0;
}

static void print_line(const struct connection *c, tfrc_time now,
		       const struct tfrc_receiver_info *info)
{
	const struct tfrc_receiver_info *last = &c->last.info;

	fprintf(stderr,
		"%8.2f-%-8.2f s  received %9.3f Mbit/s  lost %" PRIu64
		" + %" PRIu64
		" random  p %.6f  jitter %7.3f ms  delay +%7.3f ms%s\n",
		(double)(c->last.at - c->begin) * 1e-9,
		(double)(now - c->begin) * 1e-9,
		mbps(info->payload_received - last->payload_received,
		     now - c->last.at),
		info->packets_lost_congestion - last->packets_lost_congestion,
		info->packets_lost_random - last->packets_lost_random,
		info->loss_event_rate, c->jitter_ns * 1e-6,
		(double)(c->transit - c->transit_low) * 1e-6,
		info->congested ? "  congested" : "");
}

static void add_record(struct connection *c, tfrc_time now,
		       const struct tfrc_receiver_info *info)
{
	const struct tfrc_receiver_info *last = &c->last.info;
	size_t count = c->record_count;

	/* room doubles: it is full at each power of two */
	if (!(count & (count - 1))) {
		struct record *more = realloc(
			c->records, (count ? 2 * count : 1) * sizeof(*more));

		if (!more)
			fail("out of memory");
		c->records = more;
	}
	c->records[c->record_count++] = (struct record){
		.from = c->last.at,
		.to = now,
		.received = info->payload_received - last->payload_received,
		.lost_congestion = info->packets_lost_congestion -
				   last->packets_lost_congestion,
		.lost_random =
			info->packets_lost_random - last->packets_lost_random,
		.loss_event_rate = info->loss_event_rate,
	};
}

static void write_records(const struct connection *c, FILE *out)
{
	fputs(",\"intervals\":[", out);
	for (size_t i = 0; i < c->record_count; i++) {
		const struct record *r = &c->records[i];

		fprintf(out,
			"%s{\"from_s\":%.6f,\"to_s\":%.6f"
			",\"bytes_received\":%" PRIu64
			",\"lost_congestion\":%" PRIu64
			",\"lost_random\":%" PRIu64
			",\"loss_event_rate\":%.9f}",
			i ? "," : "", (double)(r->from - c->begin) * 1e-9,
			(double)(r->to - c->begin) * 1e-9, r->received,
			r->lost_congestion, r->lost_random, r->loss_event_rate);
	}
	fputc(']', out);
}

static void output(struct run *run, tfrc_time now)
{
	struct connection *c = &run->connection;
	struct tfrc_receiver_info info;

	if (now < run->next_output)
		return;
	run->next_output = now + run->options->interval;
	if (!c->receiver || c->over != TFRC_NEVER)
		return;
	tfrc_receiver_get_info(c->receiver, &info, sizeof(info));
	print_line(c, now, &info);
	if (run->json)
		add_record(c, now, &info);
	c->last = (struct mark){.at = now, .info = info};
}

static void write_judged(const struct connection *c, FILE *out)
{
	uint64_t judged[2][2];

	tfrc_testbed_judged(c->receiver, judged);
	fprintf(out,
		",\"congestion_as_congestion\":%" PRIu64
		",\"congestion_as_random\":%" PRIu64
		",\"random_as_congestion\":%" PRIu64
		",\"random_as_random\":%" PRIu64,
		judged[0][0], judged[0][1], judged[1][0], judged[1][1]);
}

static void write_json(struct run *run)
{
	const struct connection *c = &run->connection;
	struct tfrc_receiver_info info;

	tfrc_receiver_get_info(c->receiver, &info, sizeof(info));
	fprintf(run->json, "{\"completed\":%s", info.fin ? "true" : "false");
	json_time(run->json, "begin_s", c->begin);
	json_time(run->json, "newest_s", c->newest);
	fprintf(run->json,
		",\"bytes_received\":%" PRIu64 ",\"packets_received\":%" PRIu64
		",\"lost_congestion\":%" PRIu64 ",\"lost_random\":%" PRIu64
		",\"late\":%" PRIu64 ",\"stale\":%" PRIu64
		",\"refused\":%" PRIu64 ",\"loss_events\":%" PRIu64
		",\"loss_event_rate\":%.9f,\"congested_rtts\":%" PRIu64
		",\"jitter_ms\":%.6f,\"skew_ppm\":%.3f,\"strangers\":%" PRIu64,
		info.payload_received, info.packets_received,
		info.packets_lost_congestion, info.packets_lost_random,
		info.packets_late, info.packets_stale, info.packets_refused,
		info.loss_events, info.loss_event_rate, info.congested_rtts,
		c->jitter_ns * 1e-6, info.skew_ppm, run->strangers);
	if (run->oracle)
		write_judged(c, run->json);
	if (!run->options->quiet)
		write_records(c, run->json);
	fputs(",\"error\":", run->json);
	if (run->error[0])
		json_text(run->json, run->error);
	else
		fputs("null", run->json);
	fputs("}\n", run->json);
	if (fflush(run->json))
		cannot_write(run, "--json");
}

/* --- connections --------------------------------------------------------- */

static void connection_report(struct run *run)
{
	struct connection *c = &run->connection;
	struct tfrc_receiver_info info;

	tfrc_receiver_get_info(c->receiver, &info, sizeof(info));
	if (!run->options->quiet)
		fprintf(stderr,
			"%8.2f-%-8.2f s  received %9.3f Mbit/s in all, %" PRIu64
			" bytes%s\n",
			0.0, (double)(c->newest - c->begin) * 1e-9,
			mbps(info.payload_received, c->newest - c->begin),
			info.payload_received,
			info.fin ? "" : "; the end did not come");
	if (run->json)
		write_json(run);
	run->served++;
}

static void connection_end(struct run *run)
{
	if (!run->connection.receiver)
		return;
	if (run->connection.over == TFRC_NEVER)
		connection_report(run);
	tfrc_receiver_free(run->connection.receiver);
	free(run->connection.records);
	run->connection.receiver = NULL;
}

static void write_data(struct run *run, const uint8_t *data, size_t bytes)
{
	if (run->output && bytes && !run->error[0] &&
	    fwrite(data, bytes, 1, run->output) != 1)
		cannot_write(run, "the data");
}

static bool may_begin(const struct run *run, tfrc_time now)
{
	const struct connection *c = &run->connection;

	if (!c->receiver)
		return !run->options->one_off || !run->served;
	if (run->options->one_off)
		return false;
	return c->over != TFRC_NEVER || now - c->newest > SILENT_NS;
}

static void complain_of_feedback(const struct sockaddr_storage *peer,
				 socklen_t peer_bytes, int error)
{
	char name[PEER_NAME_BYTES];

	peer_name(peer, peer_bytes, name);
	complain("cannot send feedback to %s: %s", name, strerror(error));
}

/* Feedback that the local queue refuses is as lost as any other. */
static bool is_lasting(int error)
{
	return error != EAGAIN && error != ENOBUFS && error != ECONNREFUSED &&
	       error != EINTR;
}

static void feedback_failed(struct connection *c, tfrc_time now, int error)
{
	c->failed = now;
	if (!c->failing)
		complain_of_feedback(&c->peer, c->peer_bytes, error);
	c->failing = true;
}

/* A firewall may let some of it through: so not with the first that gets out. */
static void feedback_sent(struct connection *c, tfrc_time now)
{
	char peer[PEER_NAME_BYTES];

	if (!c->failing || now - c->failed < MENDED_NS)
		return;
	peer_name(&c->peer, c->peer_bytes, peer);
	complain("feedback to %s is sent again", peer);
	c->failing = false;
}

static void send_feedback(struct run *run, struct connection *c, tfrc_time now)
{
	uint8_t packet[TFRC_FEEDBACK_MAX_BYTES];
	size_t bytes;

	if (run->oracle)
		oracle_drain(run->oracle);
	bytes = tfrc_receiver_feedback(c->receiver, now, packet);
	if (!bytes)
		return;
	if (local_send(run->fd, &c->local, packet, bytes, &c->peer,
		       c->peer_bytes) >= 0)
		feedback_sent(c, now);
	else if (is_lasting(errno))
		feedback_failed(c, now, errno);
}

static void answer_due(struct run *run)
{
	const struct tfrc_receiver *receiver = run->connection.receiver;
	tfrc_time now = run->now.monotonic;

	if (receiver && tfrc_receiver_next_timer(receiver) <= now)
		send_feedback(run, &run->connection, now);
}

/* RFC 3550, 6.4.1; the delay is counted from the smallest, as clocks have an
 * offset. */
static void note_transit(struct connection *c, tfrc_time transit)
{
	double change = c->transit_low == INT64_MAX
				? 0
				: (double)(transit - c->transit);

	c->jitter_ns +=
		((change < 0 ? -change : change) - c->jitter_ns) / JITTER_SHIFT;
	c->transit = transit;
	if (transit < c->transit_low)
		c->transit_low = transit;
}

static bool is_peer(const struct sockaddr_storage *peer, socklen_t peer_bytes,
		    const struct msghdr *msg)
{
	return msg->msg_namelen == peer_bytes &&
	       !memcmp(msg->msg_name, peer, peer_bytes);
}

/* --peer: is it from there? An IPv4 address may be written as IPv6's. */
static bool is_welcome(const struct run *run, const struct msghdr *msg)
{
	const struct sockaddr_in6 *v6 = msg->msg_name;
	const struct sockaddr_in *v4 = msg->msg_name;
	const void *mapped = &v6->sin6_addr.s6_addr[12];

	for (const struct addrinfo *at = run->peers; at; at = at->ai_next) {
		const struct sockaddr_in6 *p6 =
			(const struct sockaddr_in6 *)at->ai_addr;
		const struct sockaddr_in *p4 =
			(const struct sockaddr_in *)at->ai_addr;

		if (at->ai_family == AF_INET && v6->sin6_family == AF_INET6 &&
		    IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr) &&
		    !memcmp(mapped, &p4->sin_addr, sizeof(p4->sin_addr)))
			return true;
		if (at->ai_family != v6->sin6_family)
			continue;
		if (at->ai_family == AF_INET
			    ? v4->sin_addr.s_addr == p4->sin_addr.s_addr
			    : !memcmp(&v6->sin6_addr, &p6->sin6_addr,
				      sizeof(p6->sin6_addr)))
			return true;
	}
	return !run->peers;
}

/* One host and port may have had a connection before; it may have ended. */
static bool is_of(const struct connection *c, uint64_t id,
		  const struct msghdr *msg)
{
	return c->id == id && is_peer(&c->peer, c->peer_bytes, msg);
}

/* A sender whose receiver is gone should not wait for it. */
static void reject(const struct run *run, const uint8_t *packet, size_t bytes,
		   struct msghdr *msg)
{
	uint8_t answer[TFRC_FEEDBACK_MAX_BYTES];
	size_t length = tfrc_reject(packet, bytes, answer);
	struct local local = local_of(msg);

	(void)local_send(run->fd, &local, answer, length, msg->msg_name,
			 msg->msg_namelen);
}

/* Anyone can make up addresses: so of these one is named in a while. */
static void challenge(struct run *run, tfrc_time now, const uint8_t *packet,
		      size_t bytes, struct msghdr *msg)
{
	uint8_t answer[TFRC_FEEDBACK_MAX_BYTES];
	size_t length = tfrc_challenge(packet, bytes, run->key, msg->msg_name,
				       msg->msg_namelen, answer);
	struct local local = local_of(msg);

	if (local_send(run->fd, &local, answer, length, msg->msg_name,
		       msg->msg_namelen) >= 0 ||
	    !is_lasting(errno) || now < run->patience)
		return;
	run->patience = now + SILENT_NS;
	run->unheard_bytes = msg->msg_namelen;
	memcpy(&run->unheard, msg->msg_name, msg->msg_namelen);
	complain_of_feedback(&run->unheard, run->unheard_bytes, errno);
}

/* A packet of the connection, which came at ARRIVAL and is looked at NOW. */
static void take_data(struct run *run, tfrc_time now, tfrc_time arrival,
		      const uint8_t *packet, size_t bytes)
{
	struct connection *c = &run->connection;
	struct tfrc_data data;

	if (tfrc_receiver_data(c->receiver, now, arrival, packet, bytes, &data,
			       sizeof(data)) < 0)
		return;
	if (arrival > c->newest)
		c->newest = arrival;
	note_transit(c, data.transit_ns);
	write_data(run, data.payload, data.payload_bytes);
	if (data.fin && c->over == TFRC_NEVER) {
		connection_report(run);
		c->over = run->now.monotonic;
	}
}

/* What has waited for it; each was answered when it came. */
static void take_waiting(struct run *run)
{
	struct connection *c = &run->connection;
	const struct waiting_packet *at = NULL;
	uint8_t answered[TFRC_FEEDBACK_MAX_BYTES];

	while ((at = waiting_next(run->waiting, at, c->id, &c->peer,
				  c->peer_bytes))) {
		take_data(run, at->arrival, at->arrival, at->data, at->bytes);
		tfrc_receiver_feedback(c->receiver, at->arrival, answered);
	}
	waiting_clear(run->waiting);
}

/* A sender has shown that it is there: it is the connection now. */
static void connection_begin(struct run *run, tfrc_time now, tfrc_time arrival,
			     uint64_t id, struct msghdr *msg)
{
	struct connection *c = &run->connection;
	const struct waiting_packet *first;

	connection_end(run);
	first = waiting_next(run->waiting, NULL, id, msg->msg_name,
			     msg->msg_namelen);
	if (first)
		arrival = first->arrival;
	*c = (struct connection){.receiver = tfrc_receiver_new(NULL, 0),
				 .id = id,
				 .peer_bytes = msg->msg_namelen,
				 .local = local_of(msg),
				 .begin = arrival,
				 .newest = arrival,
				 .over = TFRC_NEVER,
				 .transit_low = INT64_MAX,
				 .last = {.at = arrival}};
	if (!c->receiver)
		fail("out of memory");
	memcpy(&c->peer, msg->msg_name, msg->msg_namelen);
	c->failing = is_peer(&run->unheard, run->unheard_bytes, msg);
	c->failed = now;
	run->unheard_bytes = 0;
	if (run->oracle) {
		tfrc_testbed_oracle(c->receiver, oracle_passed, run->oracle);
		oracle_connection(run->oracle, id);
	}
	run->next_output = run->options->quiet || !run->options->interval
				   ? TFRC_NEVER
				   : now + run->options->interval;
	take_waiting(run);
}

/* A packet of no connection so far: does one begin with it? */
static bool welcome(struct run *run, tfrc_time now, tfrc_time arrival,
		    uint64_t id, const uint8_t *packet, size_t bytes,
		    struct msghdr *msg)
{
	struct waiting_packet waits = {
		.id = id, .arrival = arrival, .bytes = bytes};

	if (!is_welcome(run, msg) || !may_begin(run, now)) {
		run->strangers++;
		return false;
	}
	/* what comes late of the one that has ended begins nothing */
	if (!is_of(&run->connection, id, msg) &&
	    tfrc_is_confirmed(packet, bytes, run->key, msg->msg_name,
			      msg->msg_namelen)) {
		connection_begin(run, now, arrival, id, msg);
		return true;
	}
	if (tfrc_is_answered(packet, bytes)) {
		reject(run, packet, bytes, msg);
		return false;
	}
	challenge(run, now, packet, bytes, msg);
	waits.peer_bytes = msg->msg_namelen;
	memcpy(&waits.peer, msg->msg_name, msg->msg_namelen);
	waiting_add(run->waiting, &waits, packet);
	return false;
}

static void take_packet(struct run *run, tfrc_time now, tfrc_time arrival,
			const uint8_t *packet, size_t bytes, struct msghdr *msg)
{
	const struct connection *c = &run->connection;
	uint64_t id;

	if (tfrc_connection_of(packet, bytes, &id)) {
		run->strangers++;
		return;
	}
	if ((c->receiver && is_of(c, id, msg)) ||
	    welcome(run, now, arrival, id, packet, bytes, msg))
		take_data(run, now, arrival, packet, bytes);
}

/* What the kernel says of a buffer: when it came, and of what size the packets
 * in it are. */
struct arrival {
	tfrc_time at;
	size_t packet_bytes;
};

static struct arrival arrival_of(const struct clock_pair *now,
				 struct msghdr *msg, size_t bytes)
{
	struct arrival arrival = {.at = now->monotonic, .packet_bytes = bytes};

	for (struct cmsghdr *part = CMSG_FIRSTHDR(msg); part;
	     part = CMSG_NXTHDR(msg, part)) {
		struct timespec stamp;
		int size;

		if (part->cmsg_level == SOL_SOCKET &&
		    part->cmsg_type == SO_TIMESTAMPNS) {
			memcpy(&stamp, CMSG_DATA(part), sizeof(stamp));
			arrival.at = clock_arrival(now, &stamp);
		} else if (part->cmsg_level == IPPROTO_UDP &&
			   part->cmsg_type == UDP_GRO) {
			memcpy(&size, CMSG_DATA(part), sizeof(size));
			if (size > 0)
				arrival.packet_bytes = (size_t)size;
		}
	}
	return arrival;
}

/* All packets of a buffer; an empty datagram is one, too. */
static void take_buffer(struct run *run, const uint8_t *buffer, size_t bytes,
			struct msghdr *msg)
{
	tfrc_time now = run->now.monotonic;
	struct arrival arrival = arrival_of(&run->now, msg, bytes);

	do {
		size_t part = arrival.packet_bytes < bytes
				      ? arrival.packet_bytes
				      : bytes;

		take_packet(run, now, arrival.at, buffer, part, msg);
		buffer += part;
		bytes -= part;
	} while (bytes);
}

static int receive_batch(struct run *run)
{
	static struct sockaddr_storage from[BATCH];
	static union {
		char bytes[CMSG_SPACE(sizeof(struct timespec)) +
			   CMSG_SPACE(sizeof(int)) + LOCAL_CONTROL_BYTES];
		struct cmsghdr align;
	} control[BATCH];
	struct mmsghdr batch[BATCH];
	struct iovec where[BATCH];
	int count;

	for (unsigned int i = 0; i < BATCH; i++) {
		where[i] = (struct iovec){.iov_base = run->packets[i],
					  .iov_len = sizeof(run->packets[i])};
		batch[i] = (struct mmsghdr){
			.msg_hdr = {.msg_iov = &where[i],
				    .msg_iovlen = 1,
				    .msg_name = &from[i],
				    .msg_namelen = sizeof(from[i]),
				    .msg_control = control[i].bytes,
				    .msg_controllen = sizeof(control[i])}};
	}
	count = recvmmsg(run->fd, batch, BATCH, MSG_DONTWAIT, NULL);
	clock_update(&run->now);
	for (int i = 0; i < count; i++)
		take_buffer(run, run->packets[i], batch[i].msg_len,
			    &batch[i].msg_hdr);
	return count;
}

static void receive(struct run *run)
{
	for (unsigned int round = 0; round < ROUNDS && !stop_signal; round++) {
		int count = receive_batch(run);

		/* not for each packet: so it echoes what came last */
		answer_due(run);
		if (count < BATCH)
			break;
	}
	if (run->output && !run->error[0] && fflush(run->output))
		cannot_write(run, "the data");
}

/* --- the loop ------------------------------------------------------------ */

/* When the connection ends if nothing more comes of it. */
static tfrc_time ends_at(const struct run *run)
{
	const struct connection *c = &run->connection;

	if (c->over != TFRC_NEVER)
		return c->over + LINGER_NS;
	if (run->options->timeout)
		return c->newest + run->options->timeout;
	return TFRC_NEVER;
}

static tfrc_time wake_at(const struct run *run)
{
	const struct connection *c = &run->connection;
	tfrc_time at = run->next_output;

	if (!c->receiver)
		return at;
	if (tfrc_receiver_next_timer(c->receiver) < at)
		at = tfrc_receiver_next_timer(c->receiver);
	if (ends_at(run) < at)
		at = ends_at(run);
	return at;
}

static void wait_for_packets(struct run *run)
{
	struct pollfd polled = {.fd = run->fd, .events = POLLIN};
	tfrc_time at = wake_at(run);

	if (wait_polled(&polled, 1,
			at == TFRC_NEVER ? at : at - run->now.monotonic) > 0)
		receive(run);
	else
		clock_update(&run->now);
}

/* --timeout: what came is reported, and that it was not all. */
static void gave_up(struct run *run)
{
	char peer[PEER_NAME_BYTES], said[sizeof(run->error)];

	peer_name(&run->connection.peer, run->connection.peer_bytes, peer);
	snprintf(said, sizeof(said),
		 "%s has sent nothing for %g s, and not said that this was all",
		 peer, (double)run->options->timeout * 1e-9);
	if (run->options->one_off)
		memcpy(run->error, said, sizeof(said));
	else
		complain("%s", said);
}

static void serve(struct run *run)
{
	while (!stop_signal && !run->error[0]) {
		struct connection *c = &run->connection;
		tfrc_time now;

		wait_for_packets(run);
		now = run->now.monotonic;
		answer_due(run);
		output(run, now);
		if (!c->receiver || now < ends_at(run))
			continue;
		if (c->over == TFRC_NEVER)
			gave_up(run);
		connection_end(run);
		run->next_output = TFRC_NEVER;
		if (run->options->one_off)
			return;
	}
}

static void announce(int fd)
{
	static const char line[] = "ready\n";

	if (fd >= 0 && write(fd, line, sizeof(line) - 1) != sizeof(line) - 1)
		fail("cannot write to --ready-fd %d: %s", fd, strerror(errno));
}

int main(int argc, char **argv)
{
	struct options options = {.interval = NS_PER_S, .ready_fd = -1};
	struct run run = {.options = &options, .next_output = TFRC_NEVER};

	stdio_keep();
	read_options(&options, argc, argv);
	stop_signals_catch();
	prctl(PR_SET_TIMERSLACK, 1);
	if (options.oracle)
		run.oracle = oracle_open(options.oracle);
	run.fd = open_socket(&options);
	if (options.peer)
		run.peers = resolve(options.peer, NULL, options.family, false);
	if (!options.discard)
		run.output = open_output(options.output ? options.output : "-");
	if (options.json)
		run.json = open_output(options.json);
	run.waiting = waiting_open();
	random_bytes(run.key, sizeof(run.key));
	run.packets = calloc(BATCH, sizeof(run.packets[0]));
	if (!run.packets)
		fail("out of memory");
	clock_update(&run.now);
	announce(options.ready_fd);
	empty_output(run.output);
	empty_output(run.json);
	serve(&run);
	connection_end(&run);
	if (run.output && !close_output(run.output))
		cannot_write(&run, "the data");
	if (run.json && !close_output(run.json))
		cannot_write(&run, "--json");
	oracle_close(run.oracle);
	waiting_close(run.waiting);
	free(run.packets);
	close(run.fd);
	if (run.peers)
		freeaddrinfo(run.peers);
	if (run.error[0])
		complain("%s", run.error);
	return run.error[0] ? EXIT_FAILED : EXIT_DONE;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * labtap - writes down each TCP, UDP and SCTP packet that enters a router towards one
 * of its devices, and each that leaves by it. Who entered and never left was
 * dropped by the device's queue: netem and its kin drop before the tap of what
 * leaves.
 *
 * A packet socket sees both ways. Its filter, in the kernel, keeps what leaves
 * by the device and what comes in by any other, so the way back is not there.
 * The packets' headers come through a ring in blocks of thousands: the process
 * sleeps until one is full, and never asks for a packet. There is no timer: one
 * that fires within half a microsecond of a packet's would move that packet in
 * virtual time, and a path is to behave the same whether or not it is watched.
 */
#include "common.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define BLOCK_BYTES (1u << 20) /* some 6000 packets */
#define BLOCKS 4u
#define RETIRE_MS 86400000u /* a block is handed over when full, or a day old */
#define SNAP_BYTES 192u /* headers of a tunnel, IP and TCP, all options; chunks before DATA */
#define OUTPUT_BYTES (256u << 10)
#define SCTP_HEADER_BYTES 12u
#define EVERY_MAX 256
#define ID_SCATTER 40503u /* odd, near 2^16 / 1.618: neighbours fall far apart */
#define GRE_BYTES 4u
#define VXLAN_PORT 4789
#define VXLAN_BYTES (8u + 8u + 14u) /* UDP, VXLAN, Ethernet */
#define SCTP_DATA 0 /* chunk type, RFC 9260 section 3.2 */

static const char usage[] =
	"usage: labtap --dev DEV --out FILE [--ready-fd N]\n"
	"\n"
	"Run it on a router. Writes one record for each TCP, UDP and SCTP packet (IPv4)\n"
	"that comes in by another device than DEV or leaves by DEV, in that order in\n"
	"time, until SIGTERM or SIGINT. Of one in a tunnel (ipip, gre, vxlan) it is the\n"
	"packet inside.\n"
	"\n"
	"  --dev DEV      the device whose queue is watched\n"
	"  --out FILE     where the records go; - is standard output\n"
	"  --every N      only one packet in N, 1 to 256, a power of two: which ones their\n"
	"                 identification says, so taps on a way see the same (default: 1)\n"
	"  --ready-fd N   write \"ready\\n\" to this open descriptor once it watches\n"
	"\n"
	"A record has 24 bytes, numbers in the machine's order: time (u64, ns of\n"
	"CLOCK_MONOTONIC), source port, destination port, IP identification (u16 each),\n"
	"IP protocol (u8), leaves (u8, 1: leaves, 0: enters), sequence number (u32), how\n"
	"many of them it takes (u32): bytes of payload with TCP; with SCTP TSNs from that\n"
	"of the first DATA chunk on, without a gap; with UDP 0 and bytes of payload.\n"
	"Exit 0: done; 1: failed, or packets were missed; 2: bad options.\n";

struct record {
	uint64_t time_ns;
	uint16_t source_port;
	uint16_t dest_port;
	uint16_t ip_id;
	uint8_t protocol;
	uint8_t leaves;
	uint32_t sequence;
	uint32_t length;
};

_Static_assert(sizeof(struct record) == 24, "readers count on it");

struct tap {
	int fd;
	int ifindex;
	char *ring;
	unsigned int next_block;
	int64_t real_minus_mono_ns;
	uint32_t every;
	FILE *out;
};

enum option_code { OPT_DEV = 1, OPT_OUT, OPT_EVERY, OPT_READY_FD, OPT_HELP };

static const struct option long_options[] = {
	{ "dev", required_argument, NULL, OPT_DEV },
	{ "out", required_argument, NULL, OPT_OUT },
	{ "every", required_argument, NULL, OPT_EVERY },
	{ "ready-fd", required_argument, NULL, OPT_READY_FD },
	{ "help", no_argument, NULL, OPT_HELP },
	{ 0 },
};

struct settings {
	const char *device;
	const char *path;
	uint32_t every;
	int ready_fd;
};

static struct settings parse_options(int argc, char **argv)
{
	struct settings settings = { .every = 1, .ready_fd = -1 };
	int code;

	opterr = 0;
	while ((code = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
		if (code == OPT_DEV)
			settings.device = optarg;
		else if (code == OPT_OUT)
			settings.path = optarg;
		else if (code == OPT_EVERY)
			settings.every = (uint32_t)option_number("--every", optarg, 1, EVERY_MAX);
		else if (code == OPT_READY_FD)
			settings.ready_fd = (int)option_number("--ready-fd", optarg, 0, INT32_MAX);
		else if (code != OPT_HELP)
			bad_getopt(code, argv);
		else {
			fputs(usage, stdout);
			exit(EXIT_DONE);
		}
	}
	if (optind < argc)
		bad_options("unexpected argument '%s'; see --help", argv[optind]);
	if (settings.every & (settings.every - 1))
		bad_options("--every %u is no power of two", settings.every);
	if (!settings.device || !settings.path)
		bad_options("--dev and --out are needed; see --help");
	return settings;
}

static int attach(int fd, struct sock_filter *code, size_t length)
{
	const struct sock_fprog program = { .len = (unsigned short)length, .filter = code };

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
}

static int listen_to_nothing(const struct tap *tap)
{
	struct sock_filter code[] = { BPF_STMT(BPF_RET | BPF_K, 0) };

	return attach(tap->fd, code, 1);
}

/*
 * IPv4 TCP, UDP or SCTP, first fragments, with (device is ours) == (packet leaves),
 * and of those the ones whose scattered identification is below 2^16 / every.
 * Offsets count from the IP header, which SOCK_DGRAM packets begin with.
 */
static int listen_to_device(const struct tap *tap)
{
	const uint32_t ours = (uint32_t)tap->ifindex;
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_PROTOCOL)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_IP, 0, 18),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, offsetof(struct iphdr, protocol)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_TCP, 4, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_IPIP, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_GRE, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_SCTP, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 0, 12),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, offsetof(struct iphdr, frag_off)),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, IP_OFFMASK, 10, 0),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, offsetof(struct iphdr, id)),
		BPF_STMT(BPF_ALU | BPF_MUL | BPF_K, ID_SCATTER),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xffff),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x10000 / tap->every, 6, 0),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_IFINDEX)),
		BPF_STMT(BPF_MISC | BPF_TAX, 0),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_PKTTYPE)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PACKET_OUTGOING, 0, 4),
		BPF_STMT(BPF_MISC | BPF_TXA, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ours, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, 0),
		BPF_STMT(BPF_RET | BPF_K, SNAP_BYTES),
		BPF_STMT(BPF_MISC | BPF_TXA, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ours, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 0),
		BPF_STMT(BPF_RET | BPF_K, SNAP_BYTES),
	};

	return attach(tap->fd, code, sizeof(code) / sizeof(code[0]));
}

static int set_ring(struct tap *tap)
{
	const int version = TPACKET_V3;
	struct tpacket_req3 ring = {
		.tp_block_size = BLOCK_BYTES,
		.tp_block_nr = BLOCKS,
		.tp_frame_size = 2048, /* no more than a check in version 3 */
		.tp_frame_nr = BLOCKS * (BLOCK_BYTES / 2048),
		.tp_retire_blk_tov = RETIRE_MS,
	};

	if (setsockopt(tap->fd, SOL_PACKET, PACKET_VERSION, &version, sizeof(version)) < 0 ||
	    setsockopt(tap->fd, SOL_PACKET, PACKET_RX_RING, &ring, sizeof(ring)) < 0)
		return -1;
	tap->ring = mmap(NULL, (size_t)BLOCK_BYTES * BLOCKS, PROT_READ | PROT_WRITE, MAP_SHARED,
			 tap->fd, 0);
	return tap->ring == MAP_FAILED ? -1 : 0;
}

/* The filter is there before a first packet: protocol 0 listens to nothing. */
static bool open_tap(struct tap *tap, const char *device)
{
	const struct sockaddr_ll all = { .sll_family = AF_PACKET,
					 .sll_protocol = htons(ETH_P_ALL) };

	tap->ifindex = (int)if_nametoindex(device);
	if (!tap->ifindex) {
		complain("no device '%s' here", device);
		return false;
	}
	tap->fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (tap->fd < 0 || listen_to_device(tap) < 0 || set_ring(tap) < 0 ||
	    bind(tap->fd, (const struct sockaddr *)&all, sizeof(all)) < 0) {
		complain("cannot watch packets: %s%s", strerror(errno),
			 errno == EPERM ? " (CAP_NET_RAW is needed)" : "");
		return false;
	}
	tap->real_minus_mono_ns = clock_read_ns(CLOCK_REALTIME) - clock_read_ns(CLOCK_MONOTONIC);
	return true;
}

static void read_tcp(struct record *record, const char *segment, uint32_t bytes)
{
	struct tcphdr tcp;

	if (bytes < sizeof(tcp))
		return;
	memcpy(&tcp, segment, sizeof(tcp));
	record->sequence = ntohl(tcp.seq);
	record->length -= tcp.doff * 4u;
}

/* Control chunks come before DATA; what lies beyond the bytes kept is not seen. */
static void read_sctp(struct record *record, const char *packet, uint32_t bytes)
{
	struct {
		uint8_t type, flags;
		uint16_t length;
		uint32_t tsn;
	} chunk;
	uint32_t at = SCTP_HEADER_BYTES;

	record->length = 0;
	while (at + sizeof(chunk) <= bytes) {
		memcpy(&chunk, packet + at, sizeof(chunk));
		if (chunk.type == SCTP_DATA) {
			if (!record->length)
				record->sequence = ntohl(chunk.tsn);
			if (ntohl(chunk.tsn) - record->sequence == record->length)
				record->length++;
		}
		at += (ntohs(chunk.length) + 3u) & ~3u;
		if (ntohs(chunk.length) < 4)
			return;
	}
}

/* How much of a tunnel is around the packet inside that IP and PORTS begin; 0: none. */
static uint32_t tunnel_bytes(const struct iphdr *ip, const uint16_t ports[2])
{
	if (ip->protocol == IPPROTO_IPIP)
		return ip->ihl * 4u;
	if (ip->protocol == IPPROTO_GRE)
		return ip->ihl * 4u + GRE_BYTES;
	if (ip->protocol == IPPROTO_UDP && ntohs(ports[1]) == VXLAN_PORT)
		return ip->ihl * 4u + VXLAN_BYTES;
	return 0;
}

/* Read the headers of LEFT bytes at PACKET; what is too short has zeros. */
static void read_headers(const char *packet, uint32_t left_bytes, struct iphdr *ip,
			 uint16_t ports[2])
{
	*ip = (struct iphdr){ .ihl = sizeof(*ip) / 4 };
	ports[0] = ports[1] = 0;
	if (left_bytes < sizeof(*ip))
		return;
	memcpy(ip, packet, sizeof(*ip));
	if (left_bytes >= ip->ihl * 4u + 2 * sizeof(ports[0]))
		memcpy(ports, packet + ip->ihl * 4u, 2 * sizeof(ports[0]));
}

static void write_packet(const struct tap *tap, const struct tpacket3_hdr *header)
{
	const char *packet = (const char *)header + header->tp_net;
	const struct sockaddr_ll *link = (const void *)((const char *)header +
							TPACKET_ALIGN(sizeof(*header)));
	int64_t real_ns = (int64_t)header->tp_sec * NSEC_PER_SEC + header->tp_nsec;
	struct record record = { .leaves = link->sll_pkttype == PACKET_OUTGOING };
	uint32_t header_bytes, around_bytes, left_bytes = header->tp_snaplen;
	uint16_t ports[2];
	struct iphdr ip;

	read_headers(packet, left_bytes, &ip, ports);
	around_bytes = tunnel_bytes(&ip, ports);
	if (around_bytes && around_bytes < left_bytes) {
		packet += around_bytes;
		left_bytes -= around_bytes;
		read_headers(packet, left_bytes, &ip, ports);
	}
	header_bytes = ip.ihl * 4u;
	packet += header_bytes;
	left_bytes -= left_bytes < header_bytes ? left_bytes : header_bytes;
	record.time_ns = (uint64_t)(real_ns - tap->real_minus_mono_ns);
	record.source_port = ntohs(ports[0]);
	record.dest_port = ntohs(ports[1]);
	record.ip_id = ntohs(ip.id);
	record.protocol = ip.protocol;
	record.length = ntohs(ip.tot_len) - header_bytes;
	if (ip.protocol == IPPROTO_TCP)
		read_tcp(&record, packet, left_bytes);
	else if (ip.protocol == IPPROTO_SCTP)
		read_sctp(&record, packet, left_bytes);
	else
		record.length -= (uint32_t)sizeof(struct udphdr);
	fwrite(&record, sizeof(record), 1, tap->out);
}

static struct tpacket_block_desc *current_block(const struct tap *tap)
{
	return (void *)(tap->ring + (size_t)tap->next_block * BLOCK_BYTES);
}

static void write_block(const struct tap *tap, const struct tpacket_block_desc *block)
{
	const char *packet = (const char *)block + block->hdr.bh1.offset_to_first_pkt;

	for (uint32_t i = 0; i < block->hdr.bh1.num_pkts; i++) {
		const struct tpacket3_hdr *header = (const void *)packet;

		write_packet(tap, header);
		packet += header->tp_next_offset;
	}
}

/* Write the blocks that the kernel has handed over, and give them back. */
static void drain(struct tap *tap)
{
	for (;;) {
		struct tpacket_block_desc *block = current_block(tap);
		uint32_t *status = &block->hdr.bh1.block_status;

		if (!(__atomic_load_n(status, __ATOMIC_ACQUIRE) & TP_STATUS_USER))
			return;
		write_block(tap, block);
		__atomic_store_n(status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
		tap->next_block = (tap->next_block + 1) % BLOCKS;
	}
}

/*
 * The block that the kernel fills is not handed over. Once no packet passes the
 * filter any more, what it holds, and its count, are final.
 */
static bool drain_last(struct tap *tap)
{
	if (listen_to_nothing(tap) < 0) {
		complain("cannot stop watching: %s", strerror(errno));
		return false;
	}
	drain(tap);
	write_block(tap, current_block(tap));
	return true;
}

static bool nothing_missed(const struct tap *tap)
{
	struct tpacket_stats_v3 stats;
	socklen_t length = sizeof(stats);

	if (getsockopt(tap->fd, SOL_PACKET, PACKET_STATISTICS, &stats, &length) < 0) {
		complain("cannot read the tap's counters: %s", strerror(errno));
		return false;
	}
	if (stats.tp_drops)
		complain("%u of %u packets were missed", stats.tp_drops, stats.tp_packets);
	return !stats.tp_drops;
}

static bool watch(struct tap *tap)
{
	struct pollfd ring = { .fd = tap->fd, .events = POLLIN };

	while (!stop_signal) {
		if (poll(&ring, 1, -1) > 0)
			drain(tap);
	}
	stop_signals_done();
	return drain_last(tap) && nothing_missed(tap);
}

int main(int argc, char **argv)
{
	const struct settings settings = parse_options(argc, argv);
	struct tap tap = { .fd = -1, .every = settings.every };
	bool done;

	tap.out = open_output(settings.path);
	if (!tap.out)
		return EXIT_FAILED;
	setvbuf(tap.out, NULL, _IOFBF, OUTPUT_BYTES);
	stop_signals_catch();
	done = open_tap(&tap, settings.device) && announce_ready(settings.ready_fd) && watch(&tap);
	return close_output(tap.out, settings.path) && done ? EXIT_DONE : EXIT_FAILED;
}

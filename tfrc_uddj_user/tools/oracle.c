// SPDX-License-Identifier: GPL-2.0-only
#include "oracle.h"
#include "common.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SEQS	     (1U << 20) /* remembered */
#define IPV4_UDP     (20 + 8)	/* headers; the lab's have no options */
#define SNAP_BYTES   (IPV4_UDP + TFRC_DATA_HEADER_BYTES)
#define SOCKET_BYTES (8 << 20)
#define FIRST_BYTE   (TFRC_WIRE_VERSION << 4 | 1)
#define ID_AT	     (IPV4_UDP + 4)
#define SEQ_AT	     (IPV4_UDP + 12)

struct oracle {
	int fd;
	uint64_t connection_id;
	uint64_t *seqs; /* a table by number: number + 1, 0 is empty */
};

static int enter(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || setns(fd, CLONE_NEWNET))
		fail("cannot enter the network namespace '%s': %s", path,
		     strerror(errno));
	return close(fd);
}

static int open_packets(const char *device)
{
	struct sockaddr_ll where = {.sll_family = AF_PACKET,
				    .sll_protocol = htons(ETH_P_IP),
				    .sll_ifindex = (int)if_nametoindex(device)};
	/* UDP over IPv4 that begins as data packets do, and of it the headers
	 * alone */
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 9),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 0, 3),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, IPV4_UDP),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FIRST_BYTE, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SNAP_BYTES),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog filter = {.len = sizeof(code) / sizeof(code[0]),
				    .filter = code};
	int fd =
		socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int bytes = SOCKET_BYTES;

	if (fd < 0 || !where.sll_ifindex ||
	    setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter,
		       sizeof(filter)) ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) ||
	    bind(fd, (struct sockaddr *)&where, sizeof(where)))
		fail("cannot watch packets on '%s': %s", device,
		     strerror(errno));
	return fd;
}

struct oracle *oracle_open(const char *place)
{
	struct oracle *oracle = calloc(1, sizeof(*oracle));
	char *path = strdup(place), *device = path ? strrchr(path, ':') : NULL;
	int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

	if (!oracle || !path ||
	    !(oracle->seqs = calloc(SEQS, sizeof(oracle->seqs[0]))))
		fail("out of memory");
	if (!device)
		bad_options("--oracle takes NETNS:DEVICE, not '%s'", place);
	*device++ = '\0';
	enter(path);
	oracle->fd = open_packets(device);
	if (home < 0 || setns(home, CLONE_NEWNET))
		fail("cannot leave the network namespace '%s': %s", path,
		     strerror(errno));
	close(home);
	free(path);
	return oracle;
}

void oracle_close(struct oracle *oracle)
{
	if (!oracle)
		return;
	close(oracle->fd);
	free(oracle->seqs);
	free(oracle);
}

void oracle_connection(struct oracle *oracle, uint64_t connection_id)
{
	oracle->connection_id = connection_id;
}

static uint64_t big_endian(const uint8_t *in)
{
	uint64_t value = 0;

	for (unsigned int i = 0; i < 8; i++)
		value = value << 8 | in[i];
	return value;
}

void oracle_drain(struct oracle *oracle)
{
	uint8_t packet[SNAP_BYTES];

	while (!stop_signal) { /* packets may come faster than they are taken */
		struct sockaddr_ll from;
		socklen_t length = sizeof(from);
		ssize_t got = recvfrom(oracle->fd, packet, sizeof(packet),
				       MSG_DONTWAIT, (struct sockaddr *)&from,
				       &length);

		if (got < 0)
			return;
		if (got == SNAP_BYTES && from.sll_pkttype != PACKET_OUTGOING &&
		    big_endian(packet + ID_AT) == oracle->connection_id) {
			uint64_t seq = big_endian(packet + SEQ_AT);

			oracle->seqs[seq % SEQS] = seq + 1;
		}
	}
}

bool oracle_passed(void *arg, uint64_t seq)
{
	struct oracle *oracle = arg;

	if (oracle->seqs[seq % SEQS] != seq + 1)
		oracle_drain(oracle);
	return oracle->seqs[seq % SEQS] == seq + 1;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * stream HOST PORT - send 2 MB to a tfrc-recv with libtfrc, as fast as it says.
 *
 *	cc stream.c $(pkg-config --cflags --libs libtfrc) -o stream
 */
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <sys/random.h>
#include <tfrc.h>
#include <time.h>

static tfrc_time now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

int main(int argc, char **argv)
{
	uint8_t packet[TFRC_DATA_HEADER_BYTES + 1000] = {0};
	uint8_t back[TFRC_FEEDBACK_MAX_BYTES];
	struct addrinfo hints = {.ai_socktype = SOCK_DGRAM}, *to;
	struct tfrc_sender_config config = {.discrimination = TFRC_LOSS_UDDJ};
	struct tfrc_sender_info info = {0};
	struct tfrc_sender *sender;
	int fd, got;

	if (argc != 3 || getaddrinfo(argv[1], argv[2], &hints, &to) ||
	    getrandom(&config.connection_id, 8, 0) != 8 ||
	    getrandom(config.key, sizeof(config.key), 0) != sizeof(config.key))
		return 2;
	fd = socket(to->ai_family, SOCK_DGRAM, 0);
	sender = tfrc_sender_new(&config, sizeof(config), now());
	if (!sender || connect(fd, to->ai_addr, to->ai_addrlen))
		return 1;
	while (!info.fin_acked && !info.rejected &&
	       info.nofeedback_expirations < 30) {
		tfrc_time wait = tfrc_sender_next_send(sender) - now();
		struct pollfd polled = {.fd = fd, .events = POLLIN};
		size_t size = info.packets_sent < 2000 ? 1000 : 0; /* or end */

		if (wait <= 0) {
			tfrc_sender_packet(sender, now(), size,
					   size ? TFRC_MORE : TFRC_FIN, packet);
			send(fd, packet, TFRC_DATA_HEADER_BYTES + size, 0);
		}
		if (poll(&polled, 1, wait > 0 ? (int)(wait / 1000000) : 0) &&
		    (got = (int)recv(fd, back, sizeof(back), 0)) > 0)
			tfrc_sender_feedback(sender, now(), back, (size_t)got);
		tfrc_sender_timer(sender, now());
		tfrc_sender_get_info(sender, &info, sizeof(info));
	}
	printf("%ju bytes arrived\n", (uintmax_t)info.payload_arrived);
	tfrc_sender_free(sender);
	return !info.fin_acked;
}

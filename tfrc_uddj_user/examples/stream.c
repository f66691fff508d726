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
#include <sys/socket.h>
#include <tfrc.h>
#include <time.h>

static tfrc_time now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

int main(int argc, char **argv)
{
	static uint8_t packet[TFRC_DATA_HEADER_BYTES + 1000];
	struct addrinfo hints = {.ai_socktype = SOCK_DGRAM}, *to;
	struct tfrc_sender_config config = {.discrimination = TFRC_LOSS_UDDJ};
	struct tfrc_sender_info info = {0};
	struct tfrc_sender *sender;
	struct pollfd polled = {.events = POLLIN};

	if (argc != 3 || getaddrinfo(argv[1], argv[2], &hints, &to) ||
	    getrandom(&config.connection_id, 8, 0) != 8 ||
	    getrandom(config.key, sizeof(config.key), 0) != sizeof(config.key))
		return 2;
	polled.fd = socket(to->ai_family, SOCK_DGRAM, 0);
	sender = tfrc_sender_new(&config, sizeof(config), now());
	if (!sender || connect(polled.fd, to->ai_addr, to->ai_addrlen))
		return 1;
	while (!info.fin_acked && !info.rejected &&
	       info.nofeedback_expirations < 30) {
		uint8_t back[TFRC_FEEDBACK_MAX_BYTES];
		unsigned int left = 2000 - (unsigned int)info.packets_sent;
		size_t bytes = info.packets_sent < 2000 ? 1000 : 0;
		tfrc_time wait = tfrc_sender_next_send(sender) - now();
		ssize_t got;

		if (wait <=
		    0) { /* after the data, the end, until it is known */
			tfrc_sender_packet(sender, now(), bytes,
					   !bytes     ? TFRC_FIN
					   : left > 1 ? TFRC_MORE
						      : 0,
					   packet);
			send(polled.fd, packet, TFRC_DATA_HEADER_BYTES + bytes,
			     0);
			wait = 0;
		}
		if (poll(&polled, 1, (int)(wait / 1000000)) > 0 &&
		    (got = recv(polled.fd, back, sizeof(back), 0)) > 0)
			tfrc_sender_feedback(sender, now(), back, (size_t)got);
		tfrc_sender_timer(sender, now());
		tfrc_sender_get_info(sender, &info, sizeof(info));
	}
	printf("%llu bytes arrived, round trip %.1f ms, p %g\n",
	       (unsigned long long)info.payload_arrived,
	       (double)info.rtt_ns * 1e-6, info.loss_event_rate);
	tfrc_sender_free(sender);
	freeaddrinfo(to);
	return !info.fin_acked;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Another implementation of SCTP to talk to: usrsctp, a stack in user space, here in
 * UDP (RFC 6951), so that the kernel's SCTP leaves its packets alone.
 *
 *   usrsctp_peer sink PORT                  prints the bytes of one association
 *   usrsctp_peer send ADDRESS PORT BYTES [ALGORITHM]   sends that many, says when it is
 *                                           connected and when all is sent; ALGORITHM:
 *                                           rfc2581 (its default), hstcp, htcp, rtcc
 *
 * Both ends' UDP port is 9899.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <usrsctp.h>

#define UDP_PORT 9899
/* the stack knows it (netinet/sctp.h), its public header names the values alone */
#ifndef SCTP_PLUGGABLE_CC
#define SCTP_PLUGGABLE_CC 0x00001202
#endif
#define MESSAGE_BYTES 14400
#define WAIT_US 10000

static char buffer[65536];

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static struct socket *open_socket(void)
{
	struct sctp_udpencaps encaps = { .sue_port = htons(UDP_PORT) };
	struct socket *so;

	encaps.sue_address.ss_family = AF_INET;
	so = usrsctp_socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP, NULL, NULL, 0, NULL);
	if (!so)
		die("usrsctp_socket");
	if (usrsctp_setsockopt(so, IPPROTO_SCTP, SCTP_REMOTE_UDP_ENCAPS_PORT, &encaps,
			       sizeof(encaps)))
		die("SCTP_REMOTE_UDP_ENCAPS_PORT");
	return so;
}

static void choose(struct socket *so, const char *name)
{
	static const struct {
		const char *name;
		unsigned int number;
	} algorithms[] = {
		{ "rfc2581", SCTP_CC_RFC2581 },
		{ "hstcp", SCTP_CC_HSTCP },
		{ "htcp", SCTP_CC_HTCP },
		{ "rtcc", SCTP_CC_RTCC },
	};
	size_t n;

	for (n = 0; n < sizeof(algorithms) / sizeof(*algorithms); n++) {
		struct sctp_assoc_value wanted = { .assoc_value = algorithms[n].number };

		if (strcmp(name, algorithms[n].name))
			continue;
		if (usrsctp_setsockopt(so, IPPROTO_SCTP, SCTP_PLUGGABLE_CC, &wanted,
				       sizeof(wanted)))
			die("SCTP_PLUGGABLE_CC");
		return;
	}
	die(name);
}

static struct sockaddr_in address(const char *host, const char *port)
{
	struct sockaddr_in at = { .sin_family = AF_INET };

	at.sin_port = htons((unsigned short)atoi(port));
	if (inet_pton(AF_INET, host, &at.sin_addr) != 1)
		die(host);
	return at;
}

static void sink(const char *port)
{
	struct sockaddr_in at = address("0.0.0.0", port);
	struct socket *listening = open_socket(), *so;
	unsigned long bytes = 0;
	ssize_t got;
	int flags;

	if (usrsctp_bind(listening, (struct sockaddr *)&at, sizeof(at)) ||
	    usrsctp_listen(listening, 1))
		die("usrsctp_listen");
	puts("ready");
	fflush(stdout);
	so = usrsctp_accept(listening, NULL, NULL);
	if (!so)
		die("usrsctp_accept");
	do {
		struct sockaddr_in from;
		socklen_t from_length = sizeof(from), info_length = 0;
		unsigned int info_type = 0;

		flags = 0;
		got = usrsctp_recvv(so, buffer, sizeof(buffer), (struct sockaddr *)&from,
				    &from_length, NULL, &info_length, &info_type, &flags);
		bytes += got > 0 && !(flags & MSG_NOTIFICATION) ? (unsigned long)got : 0;
	} while (got > 0);
	printf("bytes %lu\n", bytes);
	usrsctp_close(so);
	usrsctp_close(listening);
}

static void send_bytes(const char *host, const char *port, unsigned long bytes,
		       const char *algorithm)
{
	struct sockaddr_in at = address(host, port);
	struct socket *so = open_socket();

	choose(so, algorithm);
	if (usrsctp_connect(so, (struct sockaddr *)&at, sizeof(at)))
		die("usrsctp_connect");
	puts("connected");
	fflush(stdout);
	while (bytes) {
		size_t part = bytes < MESSAGE_BYTES ? bytes : MESSAGE_BYTES;

		if (usrsctp_sendv(so, buffer, part, NULL, 0, NULL, 0, SCTP_SENDV_NOINFO, 0) < 0)
			die("usrsctp_sendv");
		bytes -= part;
	}
	if (usrsctp_shutdown(so, SHUT_WR))
		die("usrsctp_shutdown");
	/* ends when the peer has shut down, too: all is acknowledged then, and the association
	 * has ended
	 */
	while (usrsctp_recvv(so, buffer, sizeof(buffer), NULL, NULL, NULL,
			     &(socklen_t){ 0 }, &(unsigned int){ 0 }, &(int){ 0 }) > 0)
		;
	puts("sent");
	usrsctp_close(so);
}

int main(int argc, char **argv)
{
	usrsctp_init(UDP_PORT, NULL, NULL);
	if (argc == 3 && !strcmp(argv[1], "sink"))
		sink(argv[2]);
	else if ((argc == 5 || argc == 6) && !strcmp(argv[1], "send"))
		send_bytes(argv[2], argv[3], strtoul(argv[4], NULL, 10),
			   argc == 6 ? argv[5] : "rfc2581");
	else
		return 2;
	while (usrsctp_finish())
		usleep(WAIT_US);
	return 0;
}

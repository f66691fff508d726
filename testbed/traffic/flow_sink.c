// SPDX-License-Identifier: GPL-2.0-only
/*
 * One small thread a connection, asleep in the kernel for as long as bytes
 * come: an event loop would need two system calls for every watermark.
 * Without connections one socket has it all, and the main thread sleeps in it.
 * A stop closes the listening socket's receive side, then that of every open
 * connection, so each thread drains what has arrived and reports.
 */
#include "common.h"
#include "labflow.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define THREAD_STACK_BYTES (64u << 10)
#define INTERRUPT_NS 100000000 /* from one try to the next */

struct sink {
	const struct sink_options *options;
	FILE *report;
	int listen_fd;
	pthread_t accepting;
	atomic_bool accepted_last;
	int64_t real_minus_mono_ns;
	pthread_attr_t thread_attr;
	pthread_mutex_t lock; /* of the fields below and of the report */
	pthread_cond_t all_ended;
	struct connection *open;
	bool stopping;
};

struct connection {
	struct sink *sink;
	struct connection *next;
	struct connection **link; /* what points at us */
	int fd;
	struct sockaddr_in peer;
};

static int64_t monotonic_ns(const struct sink *sink, int64_t real_ns)
{
	return real_ns ? real_ns - sink->real_minus_mono_ns : -1;
}

static void report_connection(const struct sink *sink, const struct connection *connection,
			      const struct arrival *arrival)
{
	char peer[INET_ADDRSTRLEN];

	inet_ntop(AF_INET, &connection->peer.sin_addr, peer, sizeof(peer));
	fprintf(sink->report, "{\"local_port\":%u,\"peer\":\"%s\",\"peer_port\":%u",
		ntohs(sink->options->local.sin_port), peer, ntohs(connection->peer.sin_port));
	fprintf(sink->report, ",\"bytes_received\":%" PRIu64, arrival->bytes);
	json_seconds(sink->report, "first_byte_s",
		     monotonic_ns(sink, arrival->first_byte_real_ns));
	json_seconds(sink->report, "last_byte_s",
		     monotonic_ns(sink, arrival->last_byte_real_ns));
	fputs("}\n", sink->report);
}

static void connection_add(struct sink *sink, struct connection *connection)
{
	pthread_mutex_lock(&sink->lock);
	connection->next = sink->open;
	connection->link = &sink->open;
	if (connection->next)
		connection->next->link = &connection->next;
	sink->open = connection;
	pthread_mutex_unlock(&sink->lock);
}

/* Close, which answers the sender, before the report, which may be slow. */
static void connection_end(struct connection *connection, const struct arrival *arrival)
{
	struct sink *sink = connection->sink;

	pthread_mutex_lock(&sink->lock);
	close(connection->fd);
	report_connection(sink, connection, arrival);
	*connection->link = connection->next;
	if (connection->next)
		connection->next->link = connection->link;
	if (!sink->open)
		pthread_cond_signal(&sink->all_ended);
	pthread_mutex_unlock(&sink->lock);
	free(connection);
}

static void *connection_thread(void *argument)
{
	struct connection *connection = argument;
	const struct sink_options *options = connection->sink->options;
	struct arrival arrival = { 0 };

	options->transport->receive(connection->fd, options, &arrival);
	connection_end(connection, &arrival);
	return NULL;
}

/* 0, or an errno that cannot be overcome by carrying on. */
static int accept_one(struct sink *sink)
{
	struct connection *connection = malloc(sizeof(*connection));
	socklen_t length = sizeof(connection->peer);
	pthread_t thread;
	int code;

	if (!connection)
		return ENOMEM;
	connection->sink = sink;
	connection->fd = accept4(sink->listen_fd, (struct sockaddr *)&connection->peer, &length,
				 SOCK_CLOEXEC);
	if (connection->fd < 0) {
		code = errno;
		free(connection);
		return code == ECONNABORTED || code == EINTR ? 0 : code;
	}
	connection_add(sink, connection);
	code = pthread_create(&thread, &sink->thread_attr, connection_thread, connection);
	if (code)
		connection_end(connection, &(struct arrival){ 0 });
	return code;
}

static void ignore(int number)
{
	(void)number;
}

/*
 * SCTP of old kernels (6.1) goes on accepting when its socket is shut down, but a
 * signal ends the wait. One that comes before the wait does nothing, so again.
 */
static void interrupt_accept(struct sink *sink)
{
	const struct sigaction action = { .sa_handler = ignore };
	const struct timespec pause = { .tv_nsec = INTERRUPT_NS };

	sigaction(SIGALRM, &action, NULL);
	while (!atomic_load(&sink->accepted_last)) {
		pthread_kill(sink->accepting, SIGALRM);
		nanosleep(&pause, NULL);
	}
}

static void *stop_thread(void *argument)
{
	struct sink *sink = argument;
	sigset_t stops;
	int number;

	sigemptyset(&stops);
	sigaddset(&stops, SIGTERM);
	sigaddset(&stops, SIGINT);
	sigwait(&stops, &number);
	pthread_mutex_lock(&sink->lock);
	sink->stopping = true;
	pthread_mutex_unlock(&sink->lock);
	if (shutdown(sink->listen_fd, SHUT_RD) < 0)
		interrupt_accept(sink);
	return NULL;
}

/* Every thread inherits the mask; only stop_thread() waits for the signals. */
static int start_threads(struct sink *sink)
{
	pthread_t thread;
	sigset_t stops;
	int code;

	sigemptyset(&stops);
	sigaddset(&stops, SIGTERM);
	sigaddset(&stops, SIGINT);
	code = pthread_sigmask(SIG_BLOCK, &stops, NULL);
	if (!code)
		code = pthread_attr_init(&sink->thread_attr);
	if (!code)
		code = pthread_attr_setdetachstate(&sink->thread_attr, PTHREAD_CREATE_DETACHED);
	if (!code)
		code = pthread_attr_setstacksize(&sink->thread_attr, THREAD_STACK_BYTES);
	if (!code)
		code = pthread_create(&thread, &sink->thread_attr, stop_thread, sink);
	if (code)
		complain("cannot start a thread: %s", strerror(code));
	return code;
}

/* stop_thread() ends the receiving. */
static int receive_until_stopped(struct sink *sink)
{
	struct arrival arrival = { 0 };

	sink->options->transport->receive(sink->listen_fd, sink->options, &arrival);
	fprintf(sink->report, "{\"local_port\":%u,\"datagrams_received\":%" PRIu32 "}\n",
		ntohs(sink->options->local.sin_port), arrival.datagrams);
	return EXIT_DONE;
}

static bool is_stopping(struct sink *sink)
{
	bool stopping;

	pthread_mutex_lock(&sink->lock);
	stopping = sink->stopping;
	pthread_mutex_unlock(&sink->lock);
	return stopping;
}

static int accept_until_stopped(struct sink *sink)
{
	int code;
	bool stopping;

	do {
		code = accept_one(sink);
	} while (!code && !is_stopping(sink));
	atomic_store(&sink->accepted_last, true);
	pthread_mutex_lock(&sink->lock);
	stopping = sink->stopping;
	for (struct connection *c = sink->open; c; c = c->next)
		shutdown(c->fd, SHUT_RD);
	while (sink->open)
		pthread_cond_wait(&sink->all_ended, &sink->lock);
	pthread_mutex_unlock(&sink->lock);
	if (stopping)
		return EXIT_DONE;
	complain("cannot accept a connection: %s", strerror(code));
	return EXIT_FAILED;
}

int sink_run(const struct sink_options *options, int ready_fd, FILE *report)
{
	struct sink sink = {
		.options = options,
		.accepting = pthread_self(),
		.report = report,
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.all_ended = PTHREAD_COND_INITIALIZER,
		.real_minus_mono_ns = clock_read_ns(CLOCK_REALTIME) -
				      clock_read_ns(CLOCK_MONOTONIC),
	};
	char error[FLOW_ERROR_MAX] = "";
	int code = EXIT_FAILED;

	setvbuf(report, NULL, _IOLBF, BUFSIZ);
	sink.listen_fd = options->transport->listen(options, error);
	if (sink.listen_fd < 0) {
		complain("%s", error);
		return EXIT_FAILED;
	}
	if (start_threads(&sink) == 0 && announce_ready(ready_fd))
		code = options->transport->connectionless ? receive_until_stopped(&sink) :
							    accept_until_stopped(&sink);
	close(sink.listen_fd);
	return code;
}

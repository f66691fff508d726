/* SPDX-License-Identifier: GPL-2.0-only */
/* What both tools share: option values, one-line errors, signals, sockets,
 * JSON. */
#ifndef TFRC_TOOLS_COMMON_H
#define TFRC_TOOLS_COMMON_H

#include "clock.h"

#include <getopt.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>

enum exit_code { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_BAD_OPTIONS = 2 };

/* The first of SIGTERM and SIGINT that arrived; 0 while none has. */
extern volatile sig_atomic_t stop_signal;

void stop_signals_catch(void);

/*
 * Descriptors 0 to 2 that are closed are taken, so that no socket becomes one
 * of them; to read or write them fails as before. First thing in main().
 */
void stdio_keep(void);

/*
 * poll() for at most LEFT ns (TFRC_NEVER: without end), or until a signal came,
 * also if that was just before. There is room for POLLED_MAX descriptors.
 * Returns how many of them are ready.
 */
#define POLLED_MAX 2
int wait_polled(struct pollfd *polled, unsigned int count, tfrc_time left);

/* Sleep until TIME; false if a signal came first. */
bool sleep_until(tfrc_time time);

/* Print "PROGRAM: message" on stderr; fail() then exits with 1, bad_options()
 * with 2. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void fail(const char *format, ...)
	__attribute__((format(printf, 1, 2)));
_Noreturn void bad_options(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

/*
 * The next option, -1 after the last, as getopt_long(). --help and -h print
 * USAGE,
 * --version the library's version, and exit with 0; what is no option exits
 * with 2.
 */
#define OPT_HELP    'h'
#define OPT_VERSION 'V'
int next_option(int argc, char **argv, const struct option *options,
		const char *usage);

/* PORT as it is written, if it is a number from 1 to 65535; else exits with 2. */
const char *option_port(const char *text);

/* AF_INET or AF_INET6 for option -4 or -6; both given, exits with 2. */
int option_family(int before, int code);

/* A name that may stand in JSON and CSV; else exits with 2. */
const char *option_name(const char *option, const char *text);

/* Values of options; each exits with 2 and says what it takes if TEXT is not
 * valid. */
tfrc_time option_seconds(const char *option, const char *text);
/* 0, or a ms at least: who wakes up more often does nothing else. */
tfrc_time option_interval(const char *option, const char *text);
double option_rate(const char *option,
		   const char *text); /* bit/s: 500k, 4M, 1.5G */
uint64_t option_number(const char *option, const char *text, uint64_t min,
		       uint64_t max);
/* The place of TEXT in NAMES, which ends with NULL. */
int option_choice(const char *option, const char *text,
		  const char *const *names);

/* 0: any family; else AF_INET or AF_INET6. Exits if there is no such address. */
struct addrinfo *resolve(const char *host, const char *port, int family,
			 bool to_bind);

/* "ADDRESS port N"; an IPv4 address as such, also where it is written as
 * IPv6's. */
#define PEER_NAME_BYTES 80
void peer_name(const struct sockaddr_storage *peer, socklen_t bytes,
	       char name[PEER_NAME_BYTES]);

/*
 * Open PATH for writing, "-" being standard output; exits if it cannot. What is
 * in a file stays until empty_output(), when nothing is left that may fail.
 */
FILE *open_output(const char *path);
void empty_output(FILE *file);

/* Flush and close; false, with errno set, if not everything could be written. */
bool close_output(FILE *file);

void json_text(FILE *out, const char *text);

/* Seconds, or null for a negative time. */
void json_time(FILE *out, const char *key, tfrc_time time);

/* Fill BYTES at OUT from the kernel's generator. */
void random_bytes(void *out, size_t bytes);

/* Room for bursts in the kernel; what it refuses is not needed that much. */
void socket_buffers(int fd, int bytes);

#endif

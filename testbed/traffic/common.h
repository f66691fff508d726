/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What both tools share: times as int64_t nanoseconds of CLOCK_MONOTONIC,
 * option values, one-line errors, and the stop signals.
 */
#ifndef TRAFFIC_COMMON_H
#define TRAFFIC_COMMON_H

#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#define NSEC_PER_SEC INT64_C(1000000000)
#define NSEC_PER_MSEC INT64_C(1000000)

enum exit_code { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_BAD_OPTIONS = 2 };

/* The first of SIGTERM, SIGINT, SIGALRM that arrived; 0 while none has. */
extern volatile sig_atomic_t stop_signal;

/* Let SIGTERM, SIGINT and SIGALRM end a blocking call with EINTR. */
void stop_signals_catch(void);

/* From here on nothing is interrupted any more (results are being written). */
void stop_signals_done(void);

/* Print "PROGRAM: message" on stderr; bad_options() then exits with 2. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void bad_options(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The line for what getopt_long() returned as ':' or '?'; exits with 2. */
_Noreturn void bad_getopt(int code, char **argv);

/*
 * Option values; each names the option and the cure and exits with 2 if the
 * text is not valid. Seconds are decimal, not negative, with at most nine
 * digits after the point, and come back as nanoseconds.
 */
int64_t option_seconds_ns(const char *option, const char *text);
uint64_t option_rate_bps(const char *option, const char *text); /* of decimal Mb/s */
uint64_t option_number(const char *option, const char *text, uint64_t min, uint64_t max);
struct in_addr option_address(const char *option, const char *text);

int64_t clock_read_ns(clockid_t clock);
struct timespec timespec_from_ns(int64_t time_ns);

/* Sleep until an absolute CLOCK_MONOTONIC time; false if a signal came first. */
bool sleep_until_ns(int64_t time_ns);

/* Write "ready\n" to the descriptor FD, if not -1; false after complaining. */
bool announce_ready(int fd);

/* Open PATH for writing, "-" being standard output; NULL after complaining. */
FILE *open_output(const char *path);

/* Flush and close; false after complaining when not everything was written. */
bool close_output(FILE *out, const char *path);

#endif

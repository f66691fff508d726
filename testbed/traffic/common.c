// SPDX-License-Identifier: GPL-2.0-only
#include "common.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

volatile sig_atomic_t stop_signal;

/*
 * A signal that lands between the test of stop_signal and the blocking call
 * would go unseen, so SIGTERM and SIGINT are followed by an alarm a second
 * later, again and again. An end-time timer brings its own repetition.
 */
static void on_stop_signal(int number)
{
	if (!stop_signal)
		stop_signal = number;
	if (stop_signal != SIGALRM)
		alarm(1);
}

void stop_signals_catch(void)
{
	struct sigaction action = { .sa_handler = on_stop_signal };

	sigemptyset(&action.sa_mask);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGALRM, &action, NULL);
}

void stop_signals_done(void)
{
	signal(SIGTERM, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SIGALRM, SIG_IGN);
}

static void complain_list(const char *format, va_list arguments)
{
	char line[512];

	vsnprintf(line, sizeof(line), format, arguments);
	fprintf(stderr, "%s: %s\n", program_invocation_short_name, line);
}

void complain(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	complain_list(format, arguments);
	va_end(arguments);
}

void bad_options(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	complain_list(format, arguments);
	va_end(arguments);
	exit(EXIT_BAD_OPTIONS);
}

void bad_getopt(int code, char **argv)
{
	if (code == ':')
		bad_options("%s needs a value; see --help", argv[optind - 1]);
	bad_options("unknown or ambiguous option '%s'; see --help", argv[optind - 1]);
}

/* Read decimal digits; false unless there is one and the number is <= max. */
static bool take_digits(const char **text, uint64_t max, uint64_t *value)
{
	const char *p = *text;

	*value = 0;
	for (; *p >= '0' && *p <= '9'; p++) {
		uint64_t digit = (uint64_t)(*p - '0');

		if (*value > (max - digit) / 10)
			return false;
		*value = *value * 10 + digit;
	}
	if (p == *text)
		return false;
	*text = p;
	return true;
}

/* A decimal number with at most nine digits after the point, in 1e-9. */
static bool parse_nanos(const char *text, int64_t *nanos)
{
	const uint64_t max = INT64_MAX / NSEC_PER_SEC - 1;
	uint64_t whole, fraction = 0;

	if (!take_digits(&text, max, &whole))
		return false;
	if (*text == '.') {
		const char *digits = ++text;

		if (!take_digits(&text, NSEC_PER_SEC - 1, &fraction) || text - digits > 9)
			return false;
		for (int i = (int)(text - digits); i < 9; i++)
			fraction *= 10;
	}
	*nanos = (int64_t)whole * NSEC_PER_SEC + (int64_t)fraction;
	return *text == '\0';
}

int64_t option_seconds_ns(const char *option, const char *text)
{
	int64_t time_ns;

	if (!parse_nanos(text, &time_ns))
		bad_options("%s takes decimal seconds such as 12.5, up to nine digits after the point, not '%s'",
			    option, text);
	return time_ns;
}

uint64_t option_rate_bps(const char *option, const char *text)
{
	const int64_t nanos_per_bps = 1000;
	int64_t nanos;

	if (!parse_nanos(text, &nanos) || nanos < nanos_per_bps)
		bad_options("%s takes decimal Mb/s above 0 such as 1.5, not '%s'", option, text);
	return (uint64_t)(nanos / nanos_per_bps);
}

uint64_t option_number(const char *option, const char *text, uint64_t min, uint64_t max)
{
	const char *end = text;
	uint64_t value;

	if (!take_digits(&end, max, &value) || *end || value < min)
		bad_options("%s takes a whole number from %llu to %llu, not '%s'", option,
			    (unsigned long long)min, (unsigned long long)max, text);
	return value;
}

struct in_addr option_address(const char *option, const char *text)
{
	struct in_addr address;

	if (inet_pton(AF_INET, text, &address) != 1)
		bad_options("%s takes an IPv4 address such as 10.0.0.1, not '%s'", option, text);
	return address;
}

int64_t clock_read_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * NSEC_PER_SEC + now.tv_nsec;
}

struct timespec timespec_from_ns(int64_t time_ns)
{
	return (struct timespec){ .tv_sec = time_ns / NSEC_PER_SEC,
				  .tv_nsec = time_ns % NSEC_PER_SEC };
}

bool sleep_until_ns(int64_t time_ns)
{
	struct timespec deadline = timespec_from_ns(time_ns);

	return !stop_signal &&
	       clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, NULL) == 0;
}

bool announce_ready(int fd)
{
	static const char line[] = "ready\n";

	if (fd < 0 || write(fd, line, sizeof(line) - 1) == sizeof(line) - 1)
		return true;
	complain("cannot write to --ready-fd %d: %s", fd, strerror(errno));
	return false;
}

FILE *open_output(const char *path)
{
	FILE *out;

	if (!strcmp(path, "-"))
		return stdout;
	out = fopen(path, "we");
	if (!out)
		complain("cannot write '%s': %s", path, strerror(errno));
	return out;
}

bool close_output(FILE *out, const char *path)
{
	bool failed = ferror(out) != 0;

	if (fclose(out) != 0)
		failed = true;
	if (failed)
		complain("cannot write '%s': %s", path, strerror(errno));
	return !failed;
}

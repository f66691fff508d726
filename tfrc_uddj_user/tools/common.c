// SPDX-License-Identifier: GPL-2.0-only
#include "common.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

volatile sig_atomic_t stop_signal;

static void on_stop(int number)
{
	if (!stop_signal)
		stop_signal = number;
}

/* No SA_RESTART: a signal ends the call that sleeps. Output may be a closed
 * pipe. */
void stop_signals_catch(void)
{
	struct sigaction action = {.sa_handler = on_stop};

	sigemptyset(&action.sa_mask);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
}

static void print_line(const char *format, va_list arguments)
{
	char line[512];

	vsnprintf(line, sizeof(line), format, arguments);
	fprintf(stderr, "%s: %s\n", program_invocation_short_name, line);
}

void complain(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	print_line(format, arguments);
	va_end(arguments);
}

void fail(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	print_line(format, arguments);
	va_end(arguments);
	exit(EXIT_FAILED);
}

void bad_options(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	print_line(format, arguments);
	va_end(arguments);
	exit(EXIT_BAD_OPTIONS);
}

static _Noreturn void bad_getopt(int code, char **argv)
{
	if (code == ':')
		bad_options("%s needs a value; see --help", argv[optind - 1]);
	bad_options("unknown or ambiguous option '%s'; see --help",
		    argv[optind - 1]);
}

int next_option(int argc, char **argv, const struct option *options, int help,
		const char *usage)
{
	int code = getopt_long(argc, argv, ":46", options, NULL);

	if (code == ':' || code == '?')
		bad_getopt(code, argv);
	if (code == help) {
		fputs(usage, stdout);
		exit(EXIT_DONE);
	}
	return code;
}

/* A decimal number that is not negative; END is behind it. */
static bool take_decimal(const char *text, double *value, char **end)
{
	if (*text < '0' || *text > '9') /* no signs, blanks, infinities */
		return false;
	*value = strtod(text, end);
	return isfinite(*value);
}

tfrc_time option_seconds(const char *option, const char *text)
{
	double value;
	char *end;

	if (!take_decimal(text, &value, &end) || *end || value > 1e9)
		bad_options("%s takes seconds such as 12.5, not '%s'", option,
			    text);
	return (tfrc_time)llround(value * 1e9);
}

double option_rate(const char *option, const char *text)
{
	static const struct {
		const char *suffix;
		double factor;
	} units[] = {{"", 1}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9}};
	double value;
	char *end;

	if (take_decimal(text, &value, &end))
		for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
			if (!strcmp(end, units[i].suffix) &&
			    value * units[i].factor >= 1 &&
			    value * units[i].factor <= 1e12)
				return value * units[i].factor;
	bad_options(
		"%s takes a rate in bit/s such as 500k, 4M or 1.5G, not '%s'",
		option, text);
}

uint64_t option_number(const char *option, const char *text, uint64_t min,
		       uint64_t max)
{
	unsigned long long value;
	char *end;

	errno = 0;
	value = *text >= '0' && *text <= '9' ? strtoull(text, &end, 10) : 0;
	if (*text < '0' || *text > '9' || errno || *end || value < min ||
	    value > max)
		bad_options(
			"%s takes a whole number from %llu to %llu, not '%s'",
			option, (unsigned long long)min,
			(unsigned long long)max, text);
	return value;
}

int option_choice(const char *option, const char *text,
		  const char *const *names)
{
	char known[256] = "";

	for (int i = 0; names[i]; i++) {
		if (!strcmp(text, names[i]))
			return i;
		snprintf(known + strlen(known), sizeof(known) - strlen(known),
			 "%s%s", i ? ", " : "", names[i]);
	}
	bad_options("%s takes one of %s, not '%s'", option, known, text);
}

struct addrinfo *resolve(const char *host, const char *port, int family,
			 bool to_bind)
{
	struct addrinfo hints = {.ai_family = family,
				 .ai_socktype = SOCK_DGRAM,
				 .ai_flags = to_bind ? AI_PASSIVE : 0};
	struct addrinfo *found;
	int error = getaddrinfo(host, port, &hints, &found);

	if (error)
		fail("cannot find %s port %s: %s",
		     host ? host : "a local address", port,
		     gai_strerror(error));
	return found;
}

FILE *open_output(const char *path)
{
	FILE *file = strcmp(path, "-") ? fopen(path, "we") : stdout;

	if (!file)
		fail("cannot write '%s': %s", path, strerror(errno));
	return file;
}

void close_output(FILE *file, const char *path)
{
	bool failed = ferror(file);

	if ((file == stdout ? fflush(file) : fclose(file)) || failed)
		fail("cannot write '%s': %s", path, strerror(errno));
}

void json_text(FILE *out, const char *text)
{
	fputc('"', out);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fprintf(out, "\\%c", *text);
		else if ((unsigned char)*text < 0x20)
			fprintf(out, "\\u%04x", (unsigned int)*text);
		else
			fputc(*text, out);
	}
	fputc('"', out);
}

void json_time(FILE *out, const char *key, tfrc_time time)
{
	if (time < 0)
		fprintf(out, ",\"%s\":null", key);
	else
		fprintf(out, ",\"%s\":%lld.%09lld", key,
			(long long)(time / NS_PER_S),
			(long long)(time % NS_PER_S));
}

void random_bytes(void *out, size_t bytes)
{
	if (getrandom(out, bytes, 0) != (ssize_t)bytes)
		fail("no random numbers: %s", strerror(errno));
}

void socket_buffers(int fd, int bytes)
{
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
}

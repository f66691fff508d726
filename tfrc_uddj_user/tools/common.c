// SPDX-License-Identifier: GPL-2.0-only
#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define INTERVAL_LEAST_NS (NS_PER_S / 1000)

volatile sig_atomic_t stop_signal;

/*
 * A signal that comes between a look at stop_signal and the sleep after it
 * would be slept over: so it leaves a byte in a pipe that is polled, too.
 */
static int stop_pipe[2] = {-1, -1};

static void on_stop(int number)
{
	int error = errno;

	if (!stop_signal)
		stop_signal = number;
	(void)!write(stop_pipe[1], "", 1);
	errno = error;
}

/* No SA_RESTART: a signal ends the call that sleeps. Output may be a closed
 * pipe. */
void stop_signals_catch(void)
{
	struct sigaction action = {.sa_handler = on_stop};

	if (pipe2(stop_pipe, O_CLOEXEC | O_NONBLOCK))
		fail("cannot open a pipe: %s", strerror(errno));
	sigemptyset(&action.sa_mask);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
}

void stdio_keep(void)
{
	/* the lowest that is free is what open() returns */
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0 &&
		    open("/dev/null", fd ? O_RDONLY : O_WRONLY) != fd)
			exit(EXIT_FAILED);
}

/* The byte stays in the pipe: only who does not know of the signal waits. */
int wait_polled(struct pollfd *polled, unsigned int count, tfrc_time left)
{
	struct pollfd all[POLLED_MAX + 1];
	struct timespec timeout = {0};
	int ready;

	if (left > 0)
		timeout = (struct timespec){.tv_sec = left / NS_PER_S,
					    .tv_nsec = left % NS_PER_S};
	if (count) /* who only sleeps has none to copy */
		memcpy(all, polled, count * sizeof(all[0]));
	all[count] = (struct pollfd){.fd = stop_signal ? -1 : stop_pipe[0],
				     .events = POLLIN};
	ready = ppoll(all, count + 1, left == TFRC_NEVER ? NULL : &timeout,
		      NULL);
	for (unsigned int i = 0; i < count; i++)
		polled[i].revents = ready > 0 ? all[i].revents : 0;
	return ready > 0 ? ready - (all[count].revents != 0) : 0;
}

bool sleep_until(tfrc_time time)
{
	while (!stop_signal) {
		tfrc_time left = time - clock_now();

		if (left <= 0)
			return true;
		wait_polled(NULL, 0, left);
	}
	return false;
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

int next_option(int argc, char **argv, const struct option *options,
		const char *usage)
{
	int code = getopt_long(argc, argv, ":46h", options, NULL);

	if (code == ':' || code == '?')
		bad_getopt(code, argv);
	if (code == OPT_HELP)
		fputs(usage, stdout);
	else if (code == OPT_VERSION)
		printf("%s %s\n", program_invocation_short_name,
		       tfrc_version());
	else
		return code;
	exit(fflush(stdout) ? EXIT_FAILED : EXIT_DONE);
}

/* A decimal number that is not negative; END is behind it. */
static bool take_decimal(const char *text, double *value, char **end)
{
	const char *digit = *text == '.' ? text + 1 : text;

	if (*digit < '0' || *digit > '9') /* no signs, blanks, infinities */
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

tfrc_time option_interval(const char *option, const char *text)
{
	tfrc_time value = option_seconds(option, text);

	if (value && value < INTERVAL_LEAST_NS)
		bad_options("%s takes 0, or 0.001 seconds at least, not '%s'",
			    option, text);
	return value;
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

const char *option_port(const char *text)
{
	option_number("PORT", text, 1, 65535);
	return text;
}

int option_family(int before, int code)
{
	int family = code == '4' ? AF_INET : AF_INET6;

	if (before && before != family)
		bad_options("give -4 or -6, not both");
	return family;
}

/* How many bytes the UTF-8 character at TEXT has; 0: it is none. */
static unsigned int utf8_bytes(const unsigned char *text)
{
	unsigned int bytes = *text < 0x80		     ? 1
			     : *text >= 0xc2 && *text < 0xe0 ? 2
			     : *text >= 0xe0 && *text < 0xf0 ? 3
			     : *text >= 0xf0 && *text < 0xf5 ? 4
							     : 0;

	for (unsigned int i = 1; i < bytes; i++)
		if ((text[i] & 0xc0) != 0x80)
			return 0;
	/* longer than need be, a surrogate, or beyond the last character */
	if ((*text == 0xe0 && text[1] < 0xa0) ||
	    (*text == 0xed && text[1] > 0x9f) ||
	    (*text == 0xf0 && text[1] < 0x90) ||
	    (*text == 0xf4 && text[1] > 0x8f))
		return 0;
	return bytes;
}

const char *option_name(const char *option, const char *text)
{
	const unsigned char *at = (const unsigned char *)text;

	while (*at) {
		unsigned int bytes = utf8_bytes(at);

		if (!bytes || *at < 0x20 || *at == 0x7f || strchr(",\"", *at))
			bad_options(
				"%s takes UTF-8 text without commas, quotes "
				"and control characters",
				option);
		at += bytes;
	}
	return text;
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
		fail("cannot find %s: %s", host ? host : "a local address",
		     gai_strerror(error));
	return found;
}

void peer_name(const struct sockaddr_storage *peer, socklen_t bytes,
	       char name[PEER_NAME_BYTES])
{
	static const char mapped[] = "::ffff:";
	char host[64], port[8], *address = host;

	if (getnameinfo((const struct sockaddr *)peer, bytes, host,
			sizeof(host), port, sizeof(port),
			NI_NUMERICHOST | NI_NUMERICSERV)) {
		snprintf(name, PEER_NAME_BYTES, "the sender");
		return;
	}
	if (strchr(host, '.') && !strncmp(host, mapped, sizeof(mapped) - 1))
		address += sizeof(mapped) - 1;
	snprintf(name, PEER_NAME_BYTES, "%s port %s", address, port);
}

FILE *open_output(const char *path)
{
	FILE *file = NULL;
	int fd;

	if (!strcmp(path, "-"))
		return stdout;
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	if (fd >= 0)
		file = fdopen(fd, "w");
	if (!file)
		fail("cannot write '%s': %s", path, strerror(errno));
	return file;
}

/* Pipes and devices have nothing that could be taken away. */
void empty_output(FILE *file)
{
	struct stat about;

	if (file && file != stdout && !fstat(fileno(file), &about) &&
	    S_ISREG(about.st_mode) && ftruncate(fileno(file), 0))
		fail("cannot empty a file: %s", strerror(errno));
}

bool close_output(FILE *file)
{
	bool failed = ferror(file);
	int left = file == stdout ? fflush(file) : fclose(file);

	if (failed && !errno)
		errno = EIO;
	return !failed && !left;
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

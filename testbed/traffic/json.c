// SPDX-License-Identifier: GPL-2.0-only
/* The little JSON that labflow writes. */

#include "json.h"

#include "common.h"

void json_key(FILE *out, const char *key)
{
	fprintf(out, ",\"%s\":", key);
}

void json_seconds(FILE *out, const char *key, int64_t time_ns)
{
	json_key(out, key);
	if (time_ns < 0)
		fputs("null", out);
	else
		fprintf(out, "%lld.%09lld", (long long)(time_ns / NSEC_PER_SEC),
			(long long)(time_ns % NSEC_PER_SEC));
}

void json_string(FILE *out, const char *text)
{
	if (!text) {
		fputs("null", out);
		return;
	}
	fputc('"', out);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fprintf(out, "\\%c", *text);
		else if ((unsigned char)*text < 0x20)
			fprintf(out, "\\u%04x", (unsigned char)*text);
		else
			fputc(*text, out);
	}
	fputc('"', out);
}

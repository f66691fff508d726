/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef JSON_H
#define JSON_H

#include <stdint.h>
#include <stdio.h>

/* "name": for a JSON object; "name":S.NNNNNNNNN, or null if TIME_NS is < 0. */
void json_key(FILE *out, const char *key);
void json_seconds(FILE *out, const char *key, int64_t time_ns);
void json_string(FILE *out, const char *text);

#endif

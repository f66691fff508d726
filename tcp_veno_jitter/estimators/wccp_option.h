/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * WCCP's header as a TCP option: an experimental kind with an experiment's
 * identifier (RFC 6994). docs/wire-formats.md has it byte by byte.
 *
 *   on data         on what goes back
 *   0  kind 254     0  kind 254
 *   1  length 16    1  length 8
 *   2  ExID         2  ExID
 *   4  r_p          4  fb
 *   8  fb
 *   12 T_c
 *   14 hops
 *   15 0
 *
 *   symbol  field        unit
 *   r_p     rate         bytes/s of payload
 *   fb      feedback     bytes/s, how r_p is to change
 *   T_c     interval_ms  ms
 *   hops    hops         of the way, as far as its sender knows; 0: not yet
 *
 * The length tells the two apart. Whoever sent the bytes is not trusted: each
 * value is possible, no read is beyond what the caller says there is.
 */
#ifndef ESTIMATORS_WCCP_OPTION_H
#define ESTIMATORS_WCCP_OPTION_H

#include "types.h"

#define WCCP_KIND		254	/* RFC 4727 */
#define WCCP_EXID		0x5743	/* "WC" */
#define WCCP_DATA_BYTES		16
#define WCCP_ECHO_BYTES		8
#define WCCP_FEEDBACK_OFFSET	8	/* in the option on data */
#define WCCP_HOPS_MAX		15	/* longer ways count as that */
/* fb where others fill the channel, who do not listen: less than any node gives */
#define WCCP_OTHERS		(-0x7fffffff - 1)
#define WCCP_OPTIONS_MAX	40	/* bytes of options that a TCP header has */

#define WCCP_OPT_EOL		0
#define WCCP_OPT_NOP		1
#define WCCP_OPT_TIMESTAMPS	8	/* RFC 7323 */
#define WCCP_OPT_MD5		19	/* RFC 2385 */
#define WCCP_OPT_AO		29	/* RFC 5925 */

/**
 * struct wccp_request - what a data segment asks of the nodes on its way
 * @rate: r_p (bytes/s)
 * @feedback: fb (bytes/s)
 * @interval_ms: T_c (ms)
 * @hops: 1 to WCCP_HOPS_MAX; 0: not known
 */
struct wccp_request {
	u32 rate;
	s32 feedback;
	u16 interval_ms;
	u8 hops;
};

/**
 * struct wccp_found - where a segment's options have ours; -1: nowhere
 * @data: offset of the option on data
 * @echo: offset of what goes back
 * @sealed: the segment is signed (MD5, AO): it must not be changed
 * @others: there are options besides ours and time stamps, such as SACK's
 */
struct wccp_found {
	int data;
	int echo;
	bool sealed;
	bool others;
};

static inline u32 wccp_get_be16(const u8 *bytes)
{
	return (u32)bytes[0] << 8 | bytes[1];
}

static inline u32 wccp_get_be32(const u8 *bytes)
{
	return wccp_get_be16(bytes) << 16 | wccp_get_be16(bytes + 2);
}

static inline void wccp_put_be16(u8 *bytes, u16 value)
{
	bytes[0] = value >> 8;
	bytes[1] = value & 0xff;
}

static inline void wccp_put_be32(u8 *bytes, u32 value)
{
	wccp_put_be16(bytes, value >> 16);
	wccp_put_be16(bytes + 2, value);
}

/* An odd place is none: checksums are of pairs of bytes, and nobody puts it there. */
static inline void wccp_note_option(struct wccp_found *found, const u8 *option,
				    u32 offset)
{
	u32 bytes = option[1];

	if (option[0] == WCCP_OPT_MD5 || option[0] == WCCP_OPT_AO)
		found->sealed = true;
	if (option[0] != WCCP_KIND || offset % 2 || bytes < 4 ||
	    wccp_get_be16(option + 2) != WCCP_EXID) {
		found->others |= option[0] != WCCP_OPT_TIMESTAMPS;
		return;
	}
	if (bytes == WCCP_DATA_BYTES && found->data < 0)
		found->data = offset;
	if (bytes == WCCP_ECHO_BYTES && found->echo < 0)
		found->echo = offset;
}

/**
 * wccp_option_find() - look through a segment's options
 * @options: what follows the TCP header's 20 bytes
 * @bytes: how much of it there is
 *
 * Of several options of a kind the first counts. What comes after a malformed
 * one is not read, as TCP does.
 */
static inline struct wccp_found wccp_option_find(const u8 *options, u32 bytes)
{
	struct wccp_found found = { .data = -1, .echo = -1 };
	u32 i = 0;

	while (i < bytes && options[i] != WCCP_OPT_EOL) {
		if (options[i] == WCCP_OPT_NOP) {
			i++;
			continue;
		}
		if (bytes - i < 2 || options[i + 1] < 2 ||
		    options[i + 1] > bytes - i)
			break;
		wccp_note_option(&found, options + i, i);
		i += options[i + 1];
	}
	return found;
}

/**
 * wccp_option_read() - the fields of an option on data
 * @option: its WCCP_DATA_BYTES bytes
 */
static inline struct wccp_request wccp_option_read(const u8 *option)
{
	const struct wccp_request request = {
		.rate = wccp_get_be32(option + 4),
		.feedback = (s32)wccp_get_be32(option + WCCP_FEEDBACK_OFFSET),
		.interval_ms = wccp_get_be16(option + 12),
		.hops = option[14] < WCCP_HOPS_MAX ? option[14] : WCCP_HOPS_MAX,
	};

	return request;
}

/**
 * wccp_hops() - how many hops a packet has come
 * @ttl: the TTL that is left of 64, 128 or 255, the nearest of them
 *
 * Return: 1 to WCCP_HOPS_MAX.
 */
static inline u8 wccp_hops(u8 ttl)
{
	u32 first = ttl <= 64 ? 64 : ttl <= 128 ? 128 : 255;
	u32 hops = first - ttl + 1;

	return hops < WCCP_HOPS_MAX ? hops : WCCP_HOPS_MAX;
}

static inline void wccp_option_begin(u8 *option, u8 bytes)
{
	option[0] = WCCP_KIND;
	option[1] = bytes;
	wccp_put_be16(option + 2, WCCP_EXID);
}

/**
 * wccp_option_write() - make an option on data
 * @option: room for WCCP_DATA_BYTES bytes
 * @request: its fields
 */
static inline void wccp_option_write(u8 *option,
				     const struct wccp_request *request)
{
	wccp_option_begin(option, WCCP_DATA_BYTES);
	wccp_put_be32(option + 4, request->rate);
	wccp_put_be32(option + WCCP_FEEDBACK_OFFSET, request->feedback);
	wccp_put_be16(option + 12, request->interval_ms);
	option[14] = request->hops;
	option[15] = 0;
}

/**
 * wccp_echo_read() - fb of what came back
 * @option: its WCCP_ECHO_BYTES bytes
 */
static inline s32 wccp_echo_read(const u8 *option)
{
	return (s32)wccp_get_be32(option + 4);
}

/**
 * wccp_echo_write() - make an option that goes back
 * @option: room for WCCP_ECHO_BYTES bytes
 * @feedback: fb (bytes/s)
 */
static inline void wccp_echo_write(u8 *option, s32 feedback)
{
	wccp_option_begin(option, WCCP_ECHO_BYTES);
	wccp_put_be32(option + 4, feedback);
}

#endif /* ESTIMATORS_WCCP_OPTION_H */

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Oracle: a second parser, written from RFC 9293 section 3.2, and a million
 * random option fields, each in a buffer of exactly its size (ASan).
 */
#include <stdlib.h>
#include <string.h>

#include "estimators/wccp_option.h"
#include "harness.h"

#define FUZZED	1000000

static const u8 EXID[] = { WCCP_EXID >> 8, WCCP_EXID & 0xff };

static struct wccp_found oracle(const u8 *options, int bytes)
{
	struct wccp_found found = { -1, -1, false, false };
	int i, step;

	for (i = 0; i < bytes && options[i] != 0; i += step) {
		step = 1;
		if (options[i] == 1)
			continue;
		if (i + 1 == bytes)
			return found;
		step = options[i + 1];
		if (step < 2 || i + step > bytes)
			return found;
		if (options[i] == 19 || options[i] == 29)
			found.sealed = true;
		if (options[i] != 254 || i % 2 || step < 4 ||
		    memcmp(options + i + 2, EXID, 2)) {
			if (options[i] != 8)
				found.others = true;
			continue;
		}
		if (step == 16 && found.data == -1)
			found.data = i;
		if (step == 8 && found.echo == -1)
			found.echo = i;
	}
	return found;
}

/* Mostly pieces of real options, so that whole ones come up. */
static u32 random_options(u8 *options)
{
	static const u8 KINDS[] = { 0, 1, 1, 5, 8, 19, 29, 253, 254, 254, 254 };
	u32 bytes = random_between(0, 10) * 4, i = 0;

	while (i < bytes) {
		options[i++] = random_u32() % 8 ?
			KINDS[random_u32() % sizeof(KINDS)] : random_u32();
		if (i < bytes && options[i - 1] > 1) {
			static const u8 LENGTHS[] = { 16, 16, 8, 8, 10, 2, 4 };

			options[i++] = random_u32() % 8 ?
				LENGTHS[random_u32() % sizeof(LENGTHS)] :
				random_u32();
			if (i + 2 <= bytes && random_u32() % 4) {
				memcpy(options + i, EXID, 2);
				i += 2;
			}
			while (i < bytes && random_u32() % 16)
				options[i++] = random_u32();
		}
	}
	return bytes;
}

static void finds_what_the_oracle_finds(void)
{
	u32 n, bytes, datas = 0, echoes = 0, sealed = 0, alone = 0;
	struct wccp_found found, wanted;
	u8 *exact, options[64];

	for (n = 0; n < FUZZED; n++) {
		bytes = random_options(options);
		exact = malloc(bytes);
		memcpy(exact, options, bytes);
		found = wccp_option_find(exact, bytes);
		wanted = oracle(exact, bytes);
		EXPECT(found.data == wanted.data && found.echo == wanted.echo &&
		       found.sealed == wanted.sealed &&
		       found.others == wanted.others, "input %u: %d %d, not %d %d",
		       n, found.data, found.echo, wanted.data, wanted.echo);
		if (found.data >= 0) {
			wccp_option_read(exact + found.data);
			datas++;
		}
		if (found.echo >= 0) {
			wccp_echo_read(exact + found.echo);
			echoes++;
		}
		sealed += found.sealed;
		alone += !found.others;
		free(exact);
	}
	EXPECT(datas > FUZZED / 100 && echoes > FUZZED / 100 &&
	       sealed > FUZZED / 100 && alone > FUZZED / 100,
	       "%u %u %u %u of %u", datas, echoes, sealed, alone, n);
}

static void bytes_are_as_documented(void)
{
	static const u8 DATA[] = { 254, 16, 0x57, 0x43, 0x00, 0x01, 0x86, 0xa0,
				   0xff, 0xff, 0xff, 0xfe, 0x01, 0x2c, 8, 0 };
	static const u8 ECHO[] = { 254, 8, 0x57, 0x43, 0x80, 0, 0, 0 };
	const struct wccp_request request = { 100000, -2, 300, 8 };
	u8 made[16];

	wccp_option_write(made, &request);
	EXPECT(!memcmp(made, DATA, sizeof(DATA)), "data");
	wccp_echo_write(made, (s32)0x80000000);
	EXPECT(!memcmp(made, ECHO, sizeof(ECHO)), "echo");
}

static void what_is_written_is_read(void)
{
	struct wccp_request request, again;
	u8 option[16];
	u32 i;

	for (i = 0; i < 10000; i++) {
		request.rate = random_log(32);
		request.feedback = random_u32();
		request.interval_ms = random_log(16);
		request.hops = random_between(0, WCCP_HOPS_MAX);
		wccp_option_write(option, &request);
		again = wccp_option_read(option);
		EXPECT(!memcmp(&request, &again, sizeof(u32) * 2) &&
		       request.interval_ms == again.interval_ms &&
		       request.hops == again.hops, "request %u", i);
		option[14] = random_u32();
		EXPECT(wccp_option_read(option).hops <= WCCP_HOPS_MAX, "hops %u", i);
		EXPECT(wccp_option_find(option, 16).data == 0, "request %u", i);
		wccp_echo_write(option, request.feedback);
		EXPECT(wccp_echo_read(option) == request.feedback, "echo %u", i);
		EXPECT(wccp_option_find(option, 8).echo == 0, "echo %u", i);
	}
}

/* Hosts begin with 64, 128 or 255; a neighbour's packet has come one hop. */
static void hops_are_what_is_missing(void)
{
	u32 ttl;

	for (ttl = 0; ttl < 256; ttl++)
		EXPECT(wccp_hops(ttl) >= 1 && wccp_hops(ttl) <= WCCP_HOPS_MAX, "%u", ttl);
	EXPECT(wccp_hops(64) == 1 && wccp_hops(57) == 8 && wccp_hops(1) == 15, "64");
	EXPECT(wccp_hops(128) == 1 && wccp_hops(121) == 8, "128");
	EXPECT(wccp_hops(255) == 1 && wccp_hops(248) == 8, "255");
}

const struct test wccp_option_tests[] = {
	{ bytes_are_as_documented,
	  "wccp: options are byte by byte those of docs/wire-formats.md" },
	{ hops_are_what_is_missing, "wccp: hops are what is missing of a TTL" },
	{ what_is_written_is_read, "wccp: what is written is read" },
	{ finds_what_the_oracle_finds,
	  "wccp: in a million hostile option fields it finds what the oracle does" },
	{ NULL, NULL }
};

// SPDX-License-Identifier: GPL-2.0-only
#include "harness.h"
#include "nonce.h"
#include "sim.h"
#include "wire.h"

#include <string.h>

static const struct wire_data some_data = {
	.flags = WIRE_DATA_FIN | TFRC_LOSS_UDDJ << WIRE_DATA_DISCRIMINATE_SHIFT,
	.connection_id = UINT64_C(0x0102030405060708),
	.seq = UINT64_C(0x1112131415161718),
	.send_time_ns = UINT64_C(0x0122232425262728),
	.acked_edge = UINT64_C(0x0132333435363738),
	.nonce = 0x41424344,
	.rtt_us = 0x51525354,
	.rtt_sample_us = 0x61626364,
	.challenge = 0x71727374,
};

/* docs/wire-formats.md, byte by byte. */
static void test_data_bytes(void)
{
	static const uint8_t wanted[TFRC_DATA_HEADER_BYTES] = {
		0x21, 0x05, 0x00, 0x00, 0x01, 0x02, 0x03, 0x04, 0x05,
		0x06, 0x07, 0x08, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16,
		0x17, 0x18, 0x01, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27,
		0x28, 0x01, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38,
		0x41, 0x42, 0x43, 0x44, 0x51, 0x52, 0x53, 0x54, 0x61,
		0x62, 0x63, 0x64, 0x71, 0x72, 0x73, 0x74,
	};
	uint8_t packet[TFRC_DATA_HEADER_BYTES];
	struct wire_data back;

	wire_put_data(packet, &some_data);
	EXPECT(!memcmp(packet, wanted, sizeof(wanted)), "other bytes");
	EXPECT(wire_get_data(packet, sizeof(packet), &back) == 0, "refused");
	EXPECT(back.seq == some_data.seq && back.flags == some_data.flags &&
		       back.connection_id == some_data.connection_id &&
		       back.send_time_ns == some_data.send_time_ns &&
		       back.acked_edge == some_data.acked_edge &&
		       back.nonce == some_data.nonce &&
		       back.rtt_us == some_data.rtt_us &&
		       back.rtt_sample_us == some_data.rtt_sample_us &&
		       back.challenge == some_data.challenge,
	       "not what was put");
}

static struct wire_feedback some_feedback(void)
{
	return (struct wire_feedback){
		.flags = WIRE_FEEDBACK_CONGESTED,
		.connection_id = 7,
		.number = 3,
		.echo_seq = 1000,
		.echo_nonce = 5,
		.delay_ns = 6,
		.x_recv = 7,
		.p = 8,
		.loss_events = 9,
		.edge = 998,
		.nonce_sum = 10,
		.queue_us = 11,
		.challenge = 12,
		.holes = 2,
		.hole = {{.first = 10, .length = 5, .random = true},
			 {.first = 990, .length = 8}},
	};
}

static void test_feedback_bytes(void)
{
	static const uint8_t wanted[] = {
		0x22, 0x02, 0x00, 0x02, 0,    0,  0,	0, 0, 0, 0,    7,    0,
		0,    0,    0,	  0,	0,    0,  3,	0, 0, 0, 0,    0,    0,
		0x03, 0xe8, 0,	  0,	0,    5,  0,	0, 0, 0, 0,    0,    0,
		6,    0,    0,	  0,	0,    0,  0,	0, 7, 0, 0,    0,    8,
		0,    0,    0,	  9,	0,    0,  0,	0, 0, 0, 0x03, 0xe6, 0,
		0,    0,    10,	  0,	0,    0,  11,	0, 0, 0, 12,   0,    0,
		0,    0,    0,	  0,	0,    10, 0x80, 0, 0, 5, 0,    0,    0,
		0,    0,    0,	  0x03, 0xde, 0,  0,	0, 8,
	};
	struct wire_feedback fb = some_feedback(), back;
	uint8_t packet[TFRC_FEEDBACK_MAX_BYTES];
	size_t bytes = wire_put_feedback(packet, &fb);

	EXPECT(bytes == sizeof(wanted) && !memcmp(packet, wanted, bytes),
	       "other bytes");
	EXPECT(wire_get_feedback(packet, bytes, &back) == 0, "refused");
	EXPECT(back.holes == 2 && back.hole[0].random && !back.hole[1].random &&
		       back.hole[1].first == 990 && back.edge == 998 &&
		       back.challenge == 12,
	       "not what was put");
}

static void test_lengths(void)
{
	struct wire_feedback fb = some_feedback(), back;
	uint8_t packet[TFRC_FEEDBACK_MAX_BYTES + 1] = {0};
	uint8_t data[TFRC_DATA_HEADER_BYTES];
	size_t bytes = wire_put_feedback(packet, &fb);
	struct wire_data parsed;

	for (size_t n = 0; n <= sizeof(packet); n++)
		EXPECT((wire_get_feedback(packet, n, &back) == 0) ==
			       (n == bytes),
		       "%zu bytes", n);
	wire_put_data(data, &some_data);
	for (size_t n = 0; n < sizeof(data); n++)
		EXPECT(wire_get_data(data, n, &parsed) == TFRC_E_FORMAT,
		       "%zu bytes", n);
}

/* Each of these must be refused. */
static void test_impossible(void)
{
	struct {
		const char *what;
		struct wire_feedback fb;
	} bad[8];
	uint8_t packet[TFRC_FEEDBACK_MAX_BYTES];
	struct wire_feedback back;

	for (unsigned int i = 0; i < 8; i++)
		bad[i].fb = some_feedback();
	bad[0].what = "a hole of nothing";
	bad[0].fb.hole[0].length = 0;
	bad[1].what = "holes that overlap";
	bad[1].fb.hole[1].first = 12;
	bad[2].what = "holes out of order";
	bad[2].fb.hole[0].first = 995;
	bad[2].fb.hole[0].length = 1;
	bad[3].what = "a hole beyond the edge";
	bad[3].fb.hole[1].length = 9;
	bad[4].what = "an edge beyond the echo";
	bad[4].fb.edge = 1002;
	bad[5].what = "a number that leaves no room";
	bad[5].fb.echo_seq = WIRE_SEQ_MAX;
	bad[6].what = "an unknown flag";
	bad[6].fb.flags = 0x80;
	bad[7].what = "a delay of 73 years";
	bad[7].fb.delay_ns = (uint64_t)WIRE_TIME_MAX;
	for (unsigned int i = 0; i < 8; i++) {
		size_t bytes = wire_put_feedback(packet, &bad[i].fb);

		EXPECT(wire_get_feedback(packet, bytes, &back) == TFRC_E_FORMAT,
		       "%s", bad[i].what);
	}
}

static void test_other_versions(void)
{
	uint8_t packet[TFRC_DATA_HEADER_BYTES];
	struct wire_data back;

	wire_put_data(packet, &some_data);
	for (unsigned int first = 0; first < 256; first++) {
		packet[0] = (uint8_t)first;
		EXPECT((wire_get_data(packet, sizeof(packet), &back) == 0) ==
			       (first == 0x21),
		       "first byte %#x", first);
	}
}

static void test_fixed_point(void)
{
	EXPECT(wire_fraction(0) == 0 && wire_fraction(-1) == 0 &&
		       wire_fraction(NAN) == 0,
	       "no p");
	EXPECT(wire_fraction(1) == UINT32_MAX && wire_fraction(2) == UINT32_MAX,
	       "all lost");
	EXPECT(wire_fraction(1e-15) > 0, "a small p became none");
	for (double p = 1e-8; p < 1; p *= 1.7)
		EXPECT(fabs(wire_fraction_value(wire_fraction(p)) - p) < 5e-10,
		       "%g", p);
	EXPECT(wire_rate(INFINITY) == INT64_MAX && wire_rate(NAN) == 0,
	       "odd rates");
	EXPECT_NEAR(wire_rate_value(wire_rate(1 / 60.0)), 1 / 60.0, 1e-3);
	EXPECT_NEAR(wire_rate_value(wire_rate(1.25e8)), 1.25e8, 1e-12);
}

/* The authors' own vectors: messages 0, 1, ... 7 and 0, 1, ... 14. */
static void test_siphash(void)
{
	static const struct {
		size_t more;
		uint64_t hash;
	} vectors[] = {{0, UINT64_C(0x93f5f5799a932462)},
		       {7, UINT64_C(0xa129ca6149be45e5)}};
	uint8_t key[TFRC_KEY_BYTES];

	for (unsigned int i = 0; i < sizeof(key); i++)
		key[i] = (uint8_t)i;
	for (unsigned int i = 0; i < sizeof(vectors) / sizeof(vectors[0]);
	     i++) {
		uint64_t hash = siphash(key, UINT64_C(0x0706050403020100),
					key + 8, vectors[i].more);

		EXPECT(hash == vectors[i].hash, "%u: %llx", i,
		       (unsigned long long)hash);
	}
}

const struct test wire_tests[] = {
	{test_data_bytes, "a data packet's bytes are the documented ones"},
	{test_feedback_bytes,
	 "a feedback packet's bytes are the documented ones"},
	{test_lengths, "packets cut short or too long are refused"},
	{test_impossible, "feedback that cannot be is refused"},
	{test_other_versions, "other versions and types are refused"},
	{test_fixed_point,
	 "rates and fractions keep their value, and odd ones do no harm"},
	{test_siphash, "SipHash-2-4 gives its authors' values"},
	{0},
};

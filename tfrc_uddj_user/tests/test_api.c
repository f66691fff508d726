// SPDX-License-Identifier: GPL-2.0-only
/* What callers rely on: sizes, memory, who is answered. */
#include "harness.h"
#include "sim.h"
#include "wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The linker sends the library's calls here (--wrap). */
static struct {
	uint64_t calls, bytes;
} taken;

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);

void *__wrap_malloc(size_t bytes)
{
	taken.calls++;
	taken.bytes += bytes;
	return __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
	taken.calls++;
	taken.bytes += count * bytes;
	return __real_calloc(count, bytes);
}

void *__wrap_realloc(void *old, size_t bytes)
{
	taken.calls++;
	taken.bytes += bytes;
	return __real_realloc(old, bytes);
}

/* A minute of 20 Mb/s with losses, by hand: the simulator takes memory itself. */
static void exchange(struct tfrc_sender *sender, struct tfrc_receiver *receiver)
{
	static uint8_t packet[1400], feedback[TFRC_FEEDBACK_MAX_BYTES];
	tfrc_time now = SIM_SECOND;

	for (unsigned int i = 0; i < 100000; i++, now += SIM_MS / 2) {
		size_t bytes;

		tfrc_sender_packet(sender, now, 1000, TFRC_MORE, packet);
		tfrc_sender_timer(sender, now);
		if (i % 50 == 7)
			continue;
		tfrc_receiver_data(receiver, now, now, packet, 1052, NULL,
				   0);
		bytes = tfrc_receiver_feedback(receiver, now, feedback);
		if (bytes)
			tfrc_sender_feedback(sender, now + SIM_MS, feedback,
					     bytes);
	}
}

static void test_memory(void)
{
	const struct tfrc_sender_config config = {.discrimination =
							  TFRC_LOSS_UDDJ};
	struct tfrc_receiver *receiver;
	struct tfrc_sender *sender;
	uint64_t calls;

	memset(&taken, 0, sizeof(taken));
	sender = tfrc_sender_new(&config, sizeof(config), 0);
	EXPECT(taken.bytes > 65536 && taken.bytes <= 2200 << 10,
	       "a sender takes %llu bytes", (unsigned long long)taken.bytes);
	memset(&taken, 0, sizeof(taken));
	receiver = tfrc_receiver_new(NULL, 0);
	EXPECT(taken.bytes > 65536 && taken.bytes <= 230 << 10,
	       "a receiver takes %llu bytes", (unsigned long long)taken.bytes);
	calls = taken.calls;
	exchange(sender, receiver);
	EXPECT(taken.calls == calls, "%llu allocations while sending",
	       (unsigned long long)(taken.calls - calls));
	tfrc_sender_free(sender);
	tfrc_receiver_free(receiver);
}

static bool is_refused(const void *config, size_t bytes)
{
	struct tfrc_sender *sender;

	errno = 0;
	sender = tfrc_sender_new(config, bytes, 0);
	tfrc_sender_free(sender);
	return !sender && errno == EINVAL;
}

/* Sums with it must fit, too. */
static void test_burst(void)
{
	struct tfrc_sender_config config = {.burst_ns = INT64_MAX};

	EXPECT(is_refused(&config, sizeof(config)), "a burst of 292 years");
	config.burst_ns = -1;
	EXPECT(is_refused(&config, sizeof(config)), "one before it began");
	config.burst_ns = 3600 * SIM_SECOND;
	EXPECT(!is_refused(&config, sizeof(config)), "an hour");
}

/* Callers that were built with an older header, and with a newer one. */
static void test_sizes(void)
{
	struct {
		struct tfrc_sender_config config;
		uint64_t more;
	} newer = {.config = {.packet_bytes = 500}};
	struct tfrc_sender *sender = tfrc_sender_new(
		&newer.config, offsetof(struct tfrc_sender_config, max_rate),
		0);
	struct tfrc_sender_info info;
	uint8_t small[24];

	EXPECT(sender, "an older caller is refused");
	memset(small, 0xaa, sizeof(small));
	tfrc_sender_get_info(sender, (struct tfrc_sender_info *)(void *)&info,
			     sizeof(info));
	EXPECT_NEAR(info.rate, 500, 1e-12);
	tfrc_sender_get_info(sender, (struct tfrc_sender_info *)(void *)small,
			     16);
	EXPECT(small[15] != 0xaa && small[16] == 0xaa, "written too far");
	tfrc_sender_free(sender);
	EXPECT(!is_refused(&newer, sizeof(newer)),
	       "a newer caller that asks for nothing new is refused");
	newer.more = 1;
	EXPECT(is_refused(&newer, sizeof(newer)),
	       "what is not known here is taken for granted");
}

/* Nobody sets the bytes of padding: none may be taken for a member later. */
_Static_assert(offsetof(struct tfrc_sender_config, reserved) +
			       sizeof(uint32_t) ==
		       sizeof(struct tfrc_sender_config),
	       "padding at the end of a configuration");
_Static_assert(offsetof(struct tfrc_receiver_config, challenge) +
			       sizeof(uint32_t) ==
		       sizeof(struct tfrc_receiver_config),
	       "padding at the end of a configuration");

/* What is told of a packet goes with its size, too. */
static void test_data_sizes(void)
{
	const struct tfrc_sender_config config = {.connection_id = 9};
	struct tfrc_sender *sender =
		tfrc_sender_new(&config, sizeof(config), 0);
	struct tfrc_receiver *receiver = tfrc_receiver_new(NULL, 0);
	uint8_t packet[TFRC_DATA_HEADER_BYTES + 10] = {0};
	struct {
		struct tfrc_data data;
		uint64_t more;
	} newer = {.more = 1};
	struct tfrc_data older;

	memset(&older, 0xaa, sizeof(older));
	tfrc_sender_packet(sender, 0, 10, TFRC_MORE, packet);
	EXPECT(tfrc_receiver_data(receiver, 1, 1, packet, sizeof(packet),
				  &older,
				  offsetof(struct tfrc_data, payload_bytes)) ==
		       TFRC_FEEDBACK_DUE,
	       "not taken");
	EXPECT(older.payload == packet + TFRC_DATA_HEADER_BYTES &&
		       older.payload_bytes != 10,
	       "an older caller gets more than it has room for");
	tfrc_sender_packet(sender, 1, 10, TFRC_MORE, packet);
	tfrc_receiver_data(receiver, 2, 2, packet, sizeof(packet), &newer.data,
			   sizeof(newer));
	EXPECT(newer.data.seq == 1 && newer.data.payload_bytes == 10 &&
		       newer.more == 0,
	       "what is not known here is not 0 for a newer caller");
	tfrc_sender_free(sender);
	tfrc_receiver_free(receiver);
}

static void test_nonsense(void)
{
	const struct tfrc_sender_config odd[] = {
		{.options = 4},
		{.discrimination = 3},
		{.uddj_law = 3},
		{.max_rate = -1},
		{.max_rate = NAN},
		{.max_rate = INFINITY},
		{.burst_ns = -1},
		{.packet_bytes = 65508},
		{.history_packets = 1u << 25},
		{.reserved = 1},
	};

	for (unsigned int i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
		EXPECT(is_refused(&odd[i], sizeof(odd[i])), "%u", i);
	EXPECT(!strcmp(tfrc_version(), TFRC_VERSION), "%s", tfrc_version());
	EXPECT(!strcmp(tfrc_error_text(0), "no error") &&
		       !strcmp(tfrc_error_text(-99), "unknown error"),
	       "%s", tfrc_error_text(-99));
	EXPECT(strcmp(tfrc_error_text(TFRC_E_UNKNOWN), "unknown error"),
	       "an error without words");
}

/* A connection counts when its sender has shown that answers reach it. */
static void test_challenge(void)
{
	const struct tfrc_sender_config config = {.connection_id = 9};
	const struct tfrc_receiver_config asks = {.challenge = 0xc0ffee};
	struct tfrc_sender *sender =
		tfrc_sender_new(&config, sizeof(config), 0);
	struct tfrc_receiver *receiver = tfrc_receiver_new(&asks, sizeof(asks));
	uint8_t packet[TFRC_DATA_HEADER_BYTES], back[TFRC_FEEDBACK_MAX_BYTES];
	struct tfrc_sender_info info;
	struct tfrc_data data;
	tfrc_time now = 0;

	for (unsigned int i = 0; i < 3; i++, now += SIM_SECOND) {
		size_t bytes;

		tfrc_sender_packet(sender, now, 0, TFRC_FIN, packet);
		EXPECT(tfrc_is_answered(packet, sizeof(packet)) == (i > 0),
		       "packet %u", i);
		tfrc_receiver_data(receiver, now, now, packet, sizeof(packet),
				   &data, sizeof(data));
		EXPECT(data.confirmed == (i > 0), "packet %u", i);
		bytes = tfrc_receiver_feedback(receiver, now, back);
		EXPECT(tfrc_sender_feedback(sender, now + SIM_MS, back,
					    bytes) == 0,
		       "answer %u", i);
		tfrc_sender_get_info(sender, &info, sizeof(info));
		EXPECT(info.challenged == (i == 0), "answer %u", i);
		EXPECT(info.fin_acked == (i > 0),
		       "an end that anyone may have sent");
	}
	tfrc_sender_free(sender);
	tfrc_receiver_free(receiver);
}

/* Nothing is kept of first packets: neither of the false nor of the true. */
static void test_challenge_without_state(void)
{
	const struct tfrc_sender_config config = {.connection_id = 9};
	const uint8_t key[TFRC_KEY_BYTES] = {1}, other[TFRC_KEY_BYTES] = {2};
	struct tfrc_sender *sender =
		tfrc_sender_new(&config, sizeof(config), 0);
	struct tfrc_receiver *receiver = tfrc_receiver_new(NULL, 0);
	uint8_t packet[TFRC_DATA_HEADER_BYTES], back[TFRC_FEEDBACK_MAX_BYTES];
	struct tfrc_sender_info info;
	size_t bytes;

	tfrc_sender_packet(sender, 0, 0, TFRC_FIN, packet);
	EXPECT(!tfrc_is_confirmed(packet, sizeof(packet), key, "here", 4),
	       "before it has been asked");
	EXPECT(tfrc_challenge(packet, 20, key, "here", 4, back) == 0,
	       "of no packet");
	bytes = tfrc_challenge(packet, sizeof(packet), key, "here", 4, back);
	EXPECT(bytes <= 3 * sizeof(packet), "%zu bytes", bytes);
	EXPECT(tfrc_sender_feedback(sender, SIM_MS, back, bytes) == 0,
	       "not taken");
	tfrc_sender_get_info(sender, &info, sizeof(info));
	EXPECT(info.challenged && info.rtt_ns == SIM_MS && !info.fin_acked,
	       "what it says");
	for (unsigned int i = 1; i <= 5; i++) {
		tfrc_time now = (tfrc_time)i * SIM_SECOND;

		tfrc_sender_packet(sender, now, 0, TFRC_FIN, packet);
		EXPECT(i > 1 || tfrc_is_confirmed(packet, sizeof(packet), key,
						  "here", 4),
		       "it repeats what it was told");
		EXPECT(!tfrc_is_confirmed(packet, sizeof(packet), key, "there",
					  5) &&
			       !tfrc_is_confirmed(packet, sizeof(packet),
						  other, "here", 4) &&
			       !tfrc_is_confirmed(packet, 20, key, "here", 4),
		       "what it was told counts elsewhere");
		tfrc_receiver_data(receiver, now, now, packet, sizeof(packet),
				   NULL, 0);
		bytes = tfrc_receiver_feedback(receiver, now, back);
		EXPECT(tfrc_sender_feedback(sender, now + SIM_MS, back,
					    bytes) == 0,
		       "answer %u", i);
	}
	packet[11] ^= 1; /* of the connection */
	EXPECT(!tfrc_is_confirmed(packet, sizeof(packet), key, "here", 4),
	       "for another connection");
	tfrc_sender_get_info(sender, &info, sizeof(info));
	EXPECT(info.fin_acked && !info.challenged, "it is not served");
	EXPECT(info.packets_lost_congestion == 1,
	       "the packet that nobody kept is not lost");
	tfrc_sender_free(sender);
	tfrc_receiver_free(receiver);
}

/* Answers that were on their way together, over a long path. */
static void test_two_challenges(void)
{
	const struct tfrc_sender_config config = {.connection_id = 9};
	const uint8_t key[TFRC_KEY_BYTES] = {1};
	struct tfrc_sender *sender =
		tfrc_sender_new(&config, sizeof(config), 0);
	uint8_t packet[TFRC_DATA_HEADER_BYTES],
		back[4][TFRC_FEEDBACK_MAX_BYTES];
	struct tfrc_sender_info first, last;
	size_t bytes = 0;

	for (unsigned int i = 0; i < 4; i++) {
		tfrc_sender_packet(sender, i * SIM_SECOND, 0, TFRC_MORE,
				   packet);
		bytes = tfrc_challenge(packet, sizeof(packet), key, "here", 4,
				       back[i]);
	}
	for (unsigned int i = 0; i < 4; i++) {
		EXPECT(tfrc_sender_feedback(sender, (3 + i) * SIM_SECOND,
					    back[i], bytes) == 0,
		       "answer %u", i);
		tfrc_sender_get_info(sender, i ? &last : &first, sizeof(last));
	}
	EXPECT_NEAR(last.rate, first.rate, 1e-9);
	tfrc_sender_free(sender);
}

static void test_reject(void)
{
	const struct tfrc_sender_config config = {.connection_id = 9};
	struct tfrc_sender *sender =
		tfrc_sender_new(&config, sizeof(config), 0);
	uint8_t packet[TFRC_DATA_HEADER_BYTES], back[TFRC_FEEDBACK_MAX_BYTES];
	struct tfrc_sender_info info;
	size_t bytes;

	tfrc_sender_packet(sender, 0, 0, 0, packet);
	bytes = tfrc_reject(packet, sizeof(packet), back);
	EXPECT(tfrc_reject(packet, 20, back) == 0, "of no packet");
	back[31] ^= 1; /* of the nonce */
	EXPECT(tfrc_sender_feedback(sender, 1, back, bytes) == TFRC_E_FORGED,
	       "anyone can end a connection");
	back[31] ^= 1;
	EXPECT(tfrc_sender_feedback(sender, 1, back, bytes) == TFRC_E_UNKNOWN,
	       "not taken");
	tfrc_sender_get_info(sender, &info, sizeof(info));
	EXPECT(info.rejected && info.rtt_ns == 0, "what it says");
	tfrc_sender_free(sender);
}

static void test_max_rate(void)
{
	const struct tfrc_sender_config config = {.packet_bytes = 1000,
						  .max_rate = 100};
	struct tfrc_sender *sender =
		tfrc_sender_new(&config, sizeof(config), 0);
	uint8_t packet[TFRC_DATA_HEADER_BYTES];

	tfrc_sender_packet(sender, 0, 948, TFRC_MORE, packet);
	EXPECT(tfrc_sender_next_send(sender) == 10 * SIM_SECOND, "100 bytes/s");
	tfrc_sender_set_max_rate(sender, 500);
	EXPECT(tfrc_sender_next_send(sender) == 2 * SIM_SECOND, "500 bytes/s");
	tfrc_sender_set_max_rate(sender, 0);
	EXPECT(tfrc_sender_next_send(sender) == SIM_SECOND, "no limit");
	tfrc_sender_free(sender);
}

const struct test api_tests[] = {
	{test_memory,
	 "no memory is taken while sending, and as much as is said"},
	{test_burst, "a burst that no time can hold is refused"},
	{test_sizes, "callers with an older or a newer header are served"},
	{test_data_sizes, "also of what is told of a packet"},
	{test_nonsense,
	 "values that make no sense are refused; errors have words"},
	{test_challenge, "an end counts when the challenge has been repeated"},
	{test_challenge_without_state,
	 "who repeats a challenge is known, though nothing was kept"},
	{test_two_challenges, "several challenges leave the rate what the first made it"},
	{test_reject, "a receiver says that it does not know a connection"},
	{test_max_rate, "the largest rate can be set while sending"},
	{0},
};

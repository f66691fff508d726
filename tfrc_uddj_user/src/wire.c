// SPDX-License-Identifier: GPL-2.0-only
#include "wire.h"

#define TYPE_DATA     0x1
#define TYPE_FEEDBACK 0x2
#define RATE_ONE      65536.0
#define FRACTION_ONE  4294967296.0

static uint8_t *put(uint8_t *out, uint64_t value, unsigned int bytes)
{
	for (unsigned int i = bytes; i-- > 0; value >>= 8)
		out[i] = (uint8_t)value;
	return out + bytes;
}

static uint64_t get(const uint8_t **in, unsigned int bytes)
{
	uint64_t value = 0;

	while (bytes--)
		value = value << 8 | *(*in)++;
	return value;
}

static uint8_t first_byte(unsigned int type)
{
	return (uint8_t)(TFRC_WIRE_VERSION << 4 | type);
}

void wire_put_data(uint8_t out[TFRC_DATA_HEADER_BYTES],
		   const struct wire_data *data)
{
	out = put(out, first_byte(TYPE_DATA), 1);
	out = put(out, data->flags, 1);
	out = put(out, 0, 2);
	out = put(out, data->connection_id, 8);
	out = put(out, data->seq, 8);
	out = put(out, data->send_time_ns, 8);
	out = put(out, data->acked_edge, 8);
	out = put(out, data->nonce, 4);
	out = put(out, data->rtt_us, 4);
	out = put(out, data->rtt_sample_us, 4);
	put(out, data->challenge, 4);
}

static bool data_is_possible(const struct wire_data *data)
{
	unsigned int discrimination = data->flags & WIRE_DATA_DISCRIMINATE;
	unsigned int law = data->flags & WIRE_DATA_LAW;

	return !(data->flags & ~WIRE_DATA_KNOWN) && data->seq < WIRE_SEQ_MAX &&
	       data->acked_edge <= data->seq &&
	       data->send_time_ns < WIRE_TIME_MAX &&
	       discrimination >> WIRE_DATA_DISCRIMINATE_SHIFT <=
		       TFRC_LOSS_WIRELESS &&
	       law >> WIRE_DATA_LAW_SHIFT <= TFRC_UDDJ_CLASSIFY;
}

int wire_get_data(const uint8_t *in, size_t bytes, struct wire_data *data)
{
	if (bytes < TFRC_DATA_HEADER_BYTES ||
	    get(&in, 1) != first_byte(TYPE_DATA))
		return TFRC_E_FORMAT;
	data->flags = (uint8_t)get(&in, 1);
	if (get(&in, 2))
		return TFRC_E_FORMAT;
	data->connection_id = get(&in, 8);
	data->seq = get(&in, 8);
	data->send_time_ns = get(&in, 8);
	data->acked_edge = get(&in, 8);
	data->nonce = (uint32_t)get(&in, 4);
	data->rtt_us = (uint32_t)get(&in, 4);
	data->rtt_sample_us = (uint32_t)get(&in, 4);
	data->challenge = (uint32_t)get(&in, 4);
	return data_is_possible(data) ? 0 : TFRC_E_FORMAT;
}

size_t wire_put_feedback(uint8_t out[TFRC_FEEDBACK_MAX_BYTES],
			 const struct wire_feedback *fb)
{
	const uint8_t *begin = out;

	out = put(out, first_byte(TYPE_FEEDBACK), 1);
	out = put(out, fb->flags, 1);
	out = put(out, fb->holes, 2);
	out = put(out, fb->connection_id, 8);
	out = put(out, fb->number, 8);
	out = put(out, fb->echo_seq, 8);
	out = put(out, fb->echo_nonce, 4);
	out = put(out, fb->delay_ns, 8);
	out = put(out, fb->x_recv, 8);
	out = put(out, fb->p, 4);
	out = put(out, fb->loss_events, 4);
	out = put(out, fb->edge, 8);
	out = put(out, fb->nonce_sum, 4);
	out = put(out, fb->queue_us, 4);
	out = put(out, fb->challenge, 4);
	for (unsigned int i = 0; i < fb->holes; i++) {
		const struct wire_hole *hole = &fb->hole[i];

		out = put(out, hole->first, 8);
		out = put(out,
			  hole->length | (hole->random ? WIRE_HOLE_RANDOM : 0),
			  4);
	}
	return (size_t)(out - begin);
}

/* Holes are in order, do not touch, and lie below the edge. */
static int get_holes(const uint8_t *in, struct wire_feedback *fb)
{
	uint64_t free_from = 0;

	for (unsigned int i = 0; i < fb->holes; i++) {
		struct wire_hole *hole = &fb->hole[i];
		uint32_t length;

		hole->first = get(&in, 8);
		length = (uint32_t)get(&in, 4);
		hole->length = length & WIRE_HOLE_LENGTH_MAX;
		hole->random = length & WIRE_HOLE_RANDOM;
		if (!hole->length || hole->first < free_from ||
		    hole->first >= fb->edge ||
		    hole->length > fb->edge - hole->first)
			return TFRC_E_FORMAT;
		free_from = hole->first + hole->length;
	}
	return 0;
}

int wire_get_feedback(const uint8_t *in, size_t bytes, struct wire_feedback *fb)
{
	if (bytes < WIRE_FEEDBACK_HEADER_BYTES ||
	    get(&in, 1) != first_byte(TYPE_FEEDBACK))
		return TFRC_E_FORMAT;
	fb->flags = (uint8_t)get(&in, 1);
	fb->holes = (uint16_t)get(&in, 2);
	if (fb->flags & ~WIRE_FEEDBACK_KNOWN || fb->holes > WIRE_HOLES_MAX ||
	    bytes != WIRE_FEEDBACK_HEADER_BYTES +
			     fb->holes * (size_t)WIRE_HOLE_BYTES)
		return TFRC_E_FORMAT;
	fb->connection_id = get(&in, 8);
	fb->number = get(&in, 8);
	fb->echo_seq = get(&in, 8);
	fb->echo_nonce = (uint32_t)get(&in, 4);
	fb->delay_ns = get(&in, 8);
	fb->x_recv = get(&in, 8);
	fb->p = (uint32_t)get(&in, 4);
	fb->loss_events = (uint32_t)get(&in, 4);
	fb->edge = get(&in, 8);
	fb->nonce_sum = (uint32_t)get(&in, 4);
	fb->queue_us = (uint32_t)get(&in, 4);
	fb->challenge = (uint32_t)get(&in, 4);
	if (fb->echo_seq >= WIRE_SEQ_MAX || fb->edge > fb->echo_seq + 1 ||
	    fb->delay_ns >= WIRE_TIME_MAX)
		return TFRC_E_FORMAT;
	return get_holes(in, fb);
}

uint64_t wire_rate(double bytes_per_s)
{
	if (!(bytes_per_s > 0))
		return 0;
	return bytes_per_s < (double)INT64_MAX / RATE_ONE
		       ? (uint64_t)(bytes_per_s * RATE_ONE)
		       : INT64_MAX;
}

double wire_rate_value(uint64_t rate)
{
	return (double)rate / RATE_ONE;
}

/* Rounded up: a loss event rate that is not 0 must not become 0. */
uint32_t wire_fraction(double p)
{
	if (!(p > 0))
		return 0;
	return p < 1 ? (uint32_t)(p * (FRACTION_ONE - 1)) + 1 : UINT32_MAX;
}

double wire_fraction_value(uint32_t p)
{
	return (double)p / FRACTION_ONE;
}

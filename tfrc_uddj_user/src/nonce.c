// SPDX-License-Identifier: GPL-2.0-only
#include "nonce.h"

static uint64_t rotate(uint64_t x, unsigned int bits)
{
	return x << bits | x >> (64 - bits);
}

static void rounds(uint64_t v[4], unsigned int count)
{
	while (count--) {
		v[0] += v[1];
		v[1] = rotate(v[1], 13) ^ v[0];
		v[0] = rotate(v[0], 32);
		v[2] += v[3];
		v[3] = rotate(v[3], 16) ^ v[2];
		v[0] += v[3];
		v[3] = rotate(v[3], 21) ^ v[0];
		v[2] += v[1];
		v[1] = rotate(v[1], 17) ^ v[2];
		v[2] = rotate(v[2], 32);
	}
}

static uint64_t little_endian(const uint8_t *in, unsigned int bytes)
{
	uint64_t value = 0;

	for (unsigned int i = bytes; i-- > 0;)
		value = value << 8 | in[i];
	return value;
}

static void take(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	rounds(v, 2);
	v[0] ^= word;
}

uint64_t siphash(const uint8_t key[TFRC_KEY_BYTES], uint64_t first,
		 const uint8_t *more, size_t bytes)
{
	const uint64_t k0 = little_endian(key, 8),
		       k1 = little_endian(key + 8, 8);
	uint64_t v[4] = {
		k0 ^ UINT64_C(0x736f6d6570736575),
		k1 ^ UINT64_C(0x646f72616e646f6d),
		k0 ^ UINT64_C(0x6c7967656e657261),
		k1 ^ UINT64_C(0x7465646279746573),
	};
	uint64_t length = 8 + bytes;

	take(v, first);
	for (; bytes >= 8; bytes -= 8, more += 8)
		take(v, little_endian(more, 8));
	/* the length ends the message */
	take(v, length << 56 | little_endian(more, (unsigned int)bytes));
	v[2] ^= 0xff;
	rounds(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

uint32_t nonce_of(const uint8_t key[TFRC_KEY_BYTES], uint64_t seq)
{
	return (uint32_t)siphash(key, seq, NULL, 0);
}

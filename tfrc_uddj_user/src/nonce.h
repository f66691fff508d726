/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TFRC_NONCE_H
#define TFRC_NONCE_H

#include "tfrc.h"

/*
 * The nonce of packet SEQ: the low half of SipHash-2-4 (Aumasson, Bernstein,
 * 2012) of its number. Who has not got the packet can only guess it.
 */
uint32_t nonce_of(const uint8_t key[TFRC_KEY_BYTES], uint64_t seq);

/*
 * SipHash-2-4 of the eight bytes of FIRST, the lowest first, and of BYTES at
 * MORE.
 */
uint64_t siphash(const uint8_t key[TFRC_KEY_BYTES], uint64_t first,
		 const uint8_t *more, size_t bytes);

#endif

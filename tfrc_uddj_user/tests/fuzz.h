/* SPDX-License-Identifier: GPL-2.0-only */
/* The one function of a libFuzzer target; tests/mutate.c can call it, too. */
#ifndef TFRC_TESTS_FUZZ_H
#define TFRC_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t bytes);

#endif

// SPDX-License-Identifier: GPL-2.0-only
/*
 * mutate RUNS [SEED] FILE... - a stand-in for libFuzzer where there is none:
 * changes the corpus' files at random, always in the same way, and calls the
 * target. It finds less, as it does not see what the target does.
 */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_MAX 4096

static uint64_t state;

static uint32_t draw(uint32_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 32) % below;
}

static size_t mutate(uint8_t *input, size_t bytes)
{
	static const uint8_t odd[] = {0x00, 0x01, 0x7f, 0x80, 0xff, 0x11, 0x12};

	for (unsigned int i = draw(6) + 1; i-- && bytes;) {
		size_t at = draw((uint32_t)bytes), span = draw(16) + 1;

		switch (draw(5)) {
		case 0:
			input[at] ^= (uint8_t)(1 << draw(8));
			break;
		case 1:
			input[at] = odd[draw(sizeof(odd))];
			break;
		case 2:
			input[at] = (uint8_t)draw(256);
			break;
		case 3:
			bytes = at;
			break;
		default:
			if (span > bytes - at)
				span = bytes - at;
			if (bytes + span <= BYTES_MAX) {
				memmove(input + at + span, input + at,
					bytes - at);
				bytes += span;
			}
		}
	}
	return bytes;
}

static size_t read_file(const char *path, uint8_t *into)
{
	FILE *file = fopen(path, "rb");
	size_t bytes;

	if (!file) {
		perror(path);
		exit(EXIT_FAILURE);
	}
	bytes = fread(into, 1, BYTES_MAX, file);
	fclose(file);
	return bytes;
}

int main(int argc, char **argv)
{
	static uint8_t input[BYTES_MAX];
	unsigned long runs;

	if (argc < 4) {
		fputs("usage: mutate RUNS SEED FILE...\n", stderr);
		return 2;
	}
	runs = strtoul(argv[1], NULL, 10);
	state = strtoul(argv[2], NULL, 10) * UINT64_C(0x9e3779b97f4a7c15) + 1;
	for (unsigned long run = 0; run < runs; run++) {
		size_t bytes = read_file(
			argv[3 + run % (unsigned long)(argc - 3)], input);

		if (run >=
		    (unsigned long)(argc - 3)) /* each file as it is, first */
			bytes = mutate(input, bytes);
		LLVMFuzzerTestOneInput(input, bytes);
	}
	printf("%lu runs\n", runs);
	return EXIT_SUCCESS;
}

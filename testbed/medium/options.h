/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef OPTIONS_H
#define OPTIONS_H

#include "dsss.h"
#include "wifi_ap.h"

#include <cstdint>
#include <string>
#include <vector>

/** Where a node's frames come from and go to. */
struct Tap {
	std::string namespace_path; // as /proc/PID/ns/net
	std::string device;
};

struct Options {
	DsssConfig medium; // of ad hoc nodes
	ApConfig ap; // if it has stations there is an access point instead
	std::vector<Tap> taps; // of medium.stations, in that order, or of ApMedium's ports

	bool has_ap() const
	{
		return !ap.stations.empty();
	}

	int64_t start_ns = -1; // CLOCK_MONOTONIC; -1: at once
	double duration_s = 0; // of the samples; 0: until SIGTERM
	uint32_t sample_ms = 200;
	std::string counters_file; // "": none
	std::string summary_file;
	int ready_fd = -1;
};

/** Read the command line. std::invalid_argument says what is wrong with it; exits after --help. */
Options parse_options(int argc, char **argv);

#endif

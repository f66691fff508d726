/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef LABFLOW_H
#define LABFLOW_H

#include "json.h"
#include "transport.h"

#include <stdint.h>
#include <stdio.h>

struct send_schedule {
	int64_t start_ns; /* CLOCK_MONOTONIC; 0: now */
	int64_t duration_ns; /* 0: no time limit */
};

/* Run one flow and write its JSON object to REPORT; an exit code. */
int send_run(const struct flow_options *options, const struct send_schedule *schedule,
	     FILE *report);

/*
 * Accept and discard until SIGTERM or SIGINT; one JSON line a connection goes
 * to REPORT. "ready\n" is written to READY_FD, if not -1, once listening.
 */
int sink_run(const struct sink_options *options, int ready_fd, FILE *report);

#endif

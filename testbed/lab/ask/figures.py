# SPDX-License-Identifier: GPL-2.0-only
"""What can be measured of a point: the names of the figures in results.jsonl that claims and
tables may ask for."""

# What run.truth adds: how often a loss that was X was said to be Y, and what follows from it.
CLASSIFIED = (
    "classified_random_as_random",
    "classified_random_as_congestion",
    "classified_congestion_as_random",
    "classified_congestion_as_congestion",
    "classified_none_as_random",
    "classified_none_as_congestion",
    "classified_random_recall",
    "classified_random_precision",
    "classified_congestion_recall",
    "classified_congestion_precision",
)
# What run.jitter_ratio adds: what its samples are like.
JITTER_RATIOS = ("jr_zero_pct", "jr_below_pct", "sjr_below_pct", "jr_w_p50", "sjr_w_p50")
# What run.packets adds: how long packets were under way, and how many queues dropped.
PACKET_FIGURES = (
    "owd_ms_p50",
    "owd_ms_p95",
    "owd_ms_p99",
    "self_delay_ms_p50",
    "self_delay_ms_p95",
    "self_delay_ms_p99",
    "standing_queue_ms_p50",
    "standing_queue_ms_p95",
    "queue_drop_start_pct",
    "queue_drop_steady_pct",
    "power_mbps_per_s",
)
# What run.harm adds; lab.measure.harm has them.
HARM_FIGURES = (
    "harm_goodput",
    "harm_goodput_worst",
    "harm_delay",
    "harm_loss",
    "harm_timeouts",
    "harm_completion",
)
# What a wireless medium adds.
MEDIUM_FIGURES = (
    "rtt_ms_mean",
    "rtt_ms_sd",
    "rtt_ms_p95",
    "retry_drops",
    "queue_drops",
    "own_queue_drops",
    "drops_per_s",
    "collisions",
    "busy_pct_max",
    "jain_by_hops_min",
)
# All of them, and whether more or less of each is better, or neither.
MORE, LESS, NEITHER = "more", "less", ""
METRICS = {
    "goodput_mbps": MORE,
    "goodput_whole_mbps": MORE,
    "goodput_test_mbps": MORE,
    "goodput_other_mbps": MORE,
    "fair_share": NEITHER,
    "retransmits": LESS,
    "timeouts": LESS,
    "queue_delay_ms_p50": LESS,
    "queue_delay_ms_p95": LESS,
    "srtt_ms_p50": LESS,
    "jain": MORE,
    "fct_s_p50": LESS,
    "fct_s_p95": LESS,
    "unfinished": LESS,
    "loss_random": NEITHER,
    "loss_congestion": LESS,
    "ce_marks": LESS,
    "queue_drop_pct": LESS,
    "goodput_variation": LESS,
    "timeouts_per_flow": LESS,
    "standing_queue_pkts_p50": LESS,
    "standing_queue_pkts_p95": LESS,
    "standing_queue_flow_pkts_p50": LESS,
    "recovery_s": LESS,
    "unrecovered": LESS,
    "time_to_fair_s": LESS,
    "never_fair": LESS,
    **dict.fromkeys(PACKET_FIGURES, LESS),
    "power_mbps_per_s": MORE,
    **dict.fromkeys(HARM_FIGURES, LESS),
    **{name: LESS if "_as_" in name else MORE for name in CLASSIFIED},
    "classified_random_as_random": NEITHER,
    "classified_congestion_as_congestion": NEITHER,
    **dict.fromkeys(JITTER_RATIOS, NEITHER),
    **dict.fromkeys(MEDIUM_FIGURES, LESS),
    "busy_pct_max": NEITHER,
    "jain_by_hops_min": MORE,
}
# What a claim may hold a metric against besides another algorithm.
LIMITS = ("bound", "residual")

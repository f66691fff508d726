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
METRICS = (
    "goodput_mbps",
    "goodput_whole_mbps",
    "goodput_test_mbps",
    "goodput_other_mbps",
    "fair_share",
    "retransmits",
    "timeouts",
    "queue_delay_ms_p50",
    "queue_delay_ms_p95",
    "srtt_ms_p50",
    "jain",
    "fct_s_p50",
    "fct_s_p95",
    "unfinished",
    "loss_random",
    "loss_congestion",
    "ce_marks",
    "queue_drop_pct",
    "goodput_variation",
    "timeouts_per_flow",
    "standing_queue_pkts_p50",
    "standing_queue_pkts_p95",
    "standing_queue_flow_pkts_p50",
    "recovery_s",
    "unrecovered",
    "time_to_fair_s",
    "never_fair",
    *PACKET_FIGURES,
    *HARM_FIGURES,
    *CLASSIFIED,
    *JITTER_RATIOS,
    *MEDIUM_FIGURES,
)
# Of these less is better; of those that follow neither less nor more is; of all others more.
LESS_IS_BETTER = {
    "retransmits",
    "timeouts",
    "queue_delay_ms_p50",
    "queue_delay_ms_p95",
    "srtt_ms_p50",
    "fct_s_p50",
    "fct_s_p95",
    "unfinished",
    "loss_congestion",
    "ce_marks",
    "queue_drop_pct",
    "goodput_variation",
    "timeouts_per_flow",
    "standing_queue_pkts_p50",
    "standing_queue_pkts_p95",
    "standing_queue_flow_pkts_p50",
    "recovery_s",
    "unrecovered",
    "time_to_fair_s",
    "never_fair",
    *(name for name in PACKET_FIGURES if name != "power_mbps_per_s"),
    *HARM_FIGURES,
    "classified_random_as_congestion",
    "classified_congestion_as_random",
    "classified_none_as_random",
    "classified_none_as_congestion",
    *(name for name in MEDIUM_FIGURES if name not in ("busy_pct_max", "jain_by_hops_min")),
}
NO_DIRECTION = {
    "fair_share",
    "loss_random",
    "classified_random_as_random",
    "classified_congestion_as_congestion",
    *JITTER_RATIOS,
    "busy_pct_max",
}
# What a claim may hold a metric against besides another algorithm.
LIMITS = ("bound", "residual")

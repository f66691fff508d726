/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * TABE: timestamp-based available bandwidth estimation.
 *
 * Papers: K. Xu, Y. Tian, N. Ansari, "Improving TCP performance in integrated
 * wireless communications networks" (TCP New Jersey), Computer Networks 47(2),
 * 2005; JSCTP (EURASIP JWCN 2011), section 3.2.1, equations 9 and 10.
 *
 *   B_n   = (RTT * B_{n-1} + L_n) / ((t_n - t_{n-1}) + RTT)
 *   ocwnd = RTT * B_n / s
 *
 *   symbol  field           unit
 *   B_n     bw_bytes_per_s  bytes/s
 *   t_n     t_us            us, the caller's clock, wraps
 *   L_n     bytes           bytes acknowledged since t_{n-1}
 *   RTT     rtt_us          us
 *   s       mss             bytes
 *
 * Differences from the papers: L_n is gathered until the receiver's clock
 * moves (with a 1 ms tick many ACKs share one t), so no byte is lost and no
 * interval is 0.
 */
#ifndef ESTIMATORS_TABE_H
#define ESTIMATORS_TABE_H

#include "types.h"

/*
 * Largest values: B below 2^37 bytes/s (1.1 Tb/s), RTT below 2^25 us (33 s),
 * an interval below 2^31 us, L below 2^31 bytes (2^51 after * 10^6). So
 * RTT * B + L stays below 2^62 + 2^51: fits u64; the divisor fits u32.
 */
#define TABE_BW_MAX_BYTES_PER_S	0x2000000000ULL	/* 2^37 */
#define TABE_RTT_MAX_US		0x2000000U	/* 2^25 */
#define TABE_BYTES_MAX		0x7fffffffU	/* 31 bits */
#define TABE_USEC_PER_SEC	1000000U

/**
 * struct tabe - state of one path; all zero is the initial state
 * @bw_bytes_per_s: B, the bandwidth estimate (bytes/s)
 * @t_us: receiver's time of the last update (us)
 * @bytes: acknowledged since @t_us (bytes)
 * @started: @t_us is valid
 */
struct tabe {
	u64 bw_bytes_per_s;
	u32 t_us;
	u32 bytes:31,
	    started:1;
};

/**
 * tabe_restart() - forget the last arrival, keep the estimate
 * @tb: state
 *
 * For a pause in sending (silence is no evidence of a slower path) or a
 * change of clock. The next update only marks the time.
 */
static inline void tabe_restart(struct tabe *tb)
{
	tb->started = 0;
}

static inline u32 tabe_limit_rtt_us(u32 rtt_us)
{
	if (!rtt_us)
		return 1;
	return rtt_us < TABE_RTT_MAX_US ? rtt_us : TABE_RTT_MAX_US;
}

/**
 * tabe_update() - take an ACK into account
 * @tb: state
 * @t_us: t_n, when the data arrived, receiver's clock (us)
 * @bytes: what was acknowledged (bytes)
 * @rtt_us: RTT, the filter's time constant (us)
 *
 * JSCTP eq. 9. A time before the last one (reordered ACK) only adds its bytes.
 *
 * Return: true if the clock moved and @tb->bw_bytes_per_s is new.
 */
static inline bool tabe_update(struct tabe *tb, u32 t_us, u32 bytes, u32 rtt_us)
{
	s32 interval_us = t_us - tb->t_us;
	u32 divisor;
	u64 sum;

	if (!tb->started) {
		tb->started = 1;
		tb->t_us = t_us;
		tb->bytes = 0;
		return false;
	}
	if (bytes > TABE_BYTES_MAX - tb->bytes)
		bytes = TABE_BYTES_MAX - tb->bytes;
	tb->bytes += bytes;
	if (interval_us <= 0)
		return false;

	rtt_us = tabe_limit_rtt_us(rtt_us);
	divisor = interval_us + rtt_us;
	sum = rtt_us * tb->bw_bytes_per_s + (u64)tb->bytes * TABE_USEC_PER_SEC;
	tb->bw_bytes_per_s = div_u64(sum + divisor / 2, divisor);
	if (tb->bw_bytes_per_s >= TABE_BW_MAX_BYTES_PER_S)
		tb->bw_bytes_per_s = TABE_BW_MAX_BYTES_PER_S - 1;
	tb->t_us = t_us;
	tb->bytes = 0;
	return true;
}

/**
 * tabe_window_pkts() - ocwnd, the window that fills the path and no queue
 * @tb: state
 * @rtt_us: RTT (us)
 * @mss: s, segment size (bytes), not 0
 *
 * JSCTP eq. 10.
 *
 * Return: packets, rounded down, at most 2^32 - 1.
 */
static inline u32 tabe_window_pkts(const struct tabe *tb, u32 rtt_us, u32 mss)
{
	u64 bytes = div_u64(tabe_limit_rtt_us(rtt_us) * tb->bw_bytes_per_s,
			    TABE_USEC_PER_SEC);
	u64 pkts = div_u64(bytes, mss);

	return pkts > ~0U ? ~0U : pkts;
}

#endif /* ESTIMATORS_TABE_H */

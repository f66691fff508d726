/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Peer clock: the receiver's time stamps as microseconds.
 *
 * A TCP time stamp (RFC 7323) counts ticks of a length that is not announced:
 * 1 ms mostly, 1 us where the route says so, 10/3, 4 or 10 ms on hosts that
 * count their timer interrupts. The tick is estimated against local time:
 *
 *   tick = (local_n - local_0) / (ticks_n - ticks_0), nearest known length
 *
 *   symbol   field       unit
 *   local_0  ref_units   2^PEER_CLOCK_UNIT_SHIFT us, local clock, wraps
 *   ticks_0  ref_ticks   ticks, wraps
 *   tick     tick_us     us, a guess unless @known
 *   R        peer_us     us, receiver's clock, wraps
 *
 * The time stamp is written when the ACK leaves the receiver and the local
 * time is read when it comes in, so only the *change* of the return path's
 * delay over the baseline is an error. The baseline starts at 0.26 s and
 * doubles up to 268 s, so a wrong first guess is corrected.
 *
 * Known lengths are exact, so what is left is the skew of the two crystals
 * (200 ppm at worst), far within the tolerances below; it is not removed.
 * A clock that fits no known length is reported as not known, and so is one
 * that falls behind ours by more than 0.5 s and 1/64: a receiver gains if its
 * packets seem to have waited less than they did.
 */
#ifndef ESTIMATORS_PEER_CLOCK_H
#define ESTIMATORS_PEER_CLOCK_H

#include "types.h"

/* Room is scarce in a connection: baselines are kept to 1 ms, and wrap (50 d) */
#define PEER_CLOCK_UNIT_SHIFT	10

/*
 * Taken for the tick until it is known, so that times from the very beginning
 * can be compared with later ones: nearly all receivers tick in milliseconds.
 */
#define PEER_CLOCK_GUESS_US	1000

#define PEER_CLOCK_FIRST_SHIFT	18	/* 2^18 us: 0.26 s */
#define PEER_CLOCK_LAST_SHIFT	28	/* 2^28 us: 268 s */
/* A tick from fewer ticks than this would be off by its own rounding. */
#define PEER_CLOCK_MIN_TICKS	16
/*
 * How far a measured tick may be off a known length, as a right shift. The
 * delay of a return path changes by less than 0.5 s: 1/8 of 4 s, 1/64 of 33 s.
 * On shorter baselines 1/4 still tells the lengths apart.
 */
#define PEER_CLOCK_MEDIUM_US	0x400000U	/* 2^22: 4.2 s */
#define PEER_CLOCK_LONG_US	0x2000000U	/* 2^25: 33.6 s */
#define PEER_CLOCK_SHORT_SHIFT	2
#define PEER_CLOCK_MEDIUM_SHIFT	3
#define PEER_CLOCK_LONG_SHIFT	6
/*
 * A clock that falls this far behind stands or goes slow; the receiver may gain
 * from that, so it is not believed before a baseline of 4.2 s.
 */
#define PEER_CLOCK_LAG_US	500000U
#define PEER_CLOCK_DOUBT_SHIFT	22

/**
 * enum peer_clock_result - what a time stamp did to the clock
 * @PEER_CLOCK_OK: peer_us holds this time stamp's time
 * @PEER_CLOCK_OLD: an older time stamp than the newest (reordered ACK): ignored
 * @PEER_CLOCK_CHANGED: as OK, but not to be compared with earlier values
 */
enum peer_clock_result {
	PEER_CLOCK_OK,
	PEER_CLOCK_OLD,
	PEER_CLOCK_CHANGED,
};

/**
 * struct peer_clock - state of one path; all zero is the initial state
 * @peer_us: newest time stamp in us; only differences mean something
 * @ref_units: local time at the start of the baseline
 * @ref_ticks: time stamp at the start of the baseline
 * @last_ticks: newest time stamp
 * @tick_us: length of a tick (us), a guess unless @known; 0: there was no time yet
 * @check_shift: look next when the baseline is 2^this us long, 0: no baseline
 * @known: @tick_us was measured
 * @gap: the caller's: a packet was missing at the last ACK of which it asked that
 * @clear: the caller's: how often no queue stood behind a gap, of late
 *
 * @peer_us and @last_ticks change with each ACK. Side by side gcc makes one store of both,
 * which takes three instructions more than two.
 */
struct peer_clock {
	u32 peer_us;
	u32 ref_units;
	u32 ref_ticks;
	u32 last_ticks;
	u16 tick_us;
	u8 check_shift;
	u8 known:1,
	   gap:1,
	   clear:6;
};

/* A known length of a tick, and where the next longer one is nearer. */
struct peer_clock_length {
	u64 bound_ns;
	u32 tick_us;
};

/**
 * peer_clock_known_us() - length of a tick (us), 0 if it is not known
 * @pc: state
 */
static inline u32 peer_clock_known_us(const struct peer_clock *pc)
{
	return pc->known ? pc->tick_us : 0;
}

/**
 * peer_clock_goes() - was there a time stamp yet?
 * @pc: state
 */
static inline bool peer_clock_goes(const struct peer_clock *pc)
{
	return pc->check_shift;
}

/* @tick_us: 0 if it is not known. */
static inline void peer_clock_set_tick(struct peer_clock *pc, u32 tick_us)
{
	pc->known = tick_us != 0;
	pc->tick_us = tick_us ? tick_us : PEER_CLOCK_GUESS_US;
}

/* The known length nearest (in ratio) to a measured one; 0 if none is near. */
static inline u32 peer_clock_nearest_us(u64 measured_ns)
{
	/* each bound is the geometric mean of two neighbours */
	static const struct peer_clock_length known[] = {
		{ 100, 0 },
		{ 31623, 1 },
		{ 1825687, 1000 },	/* HZ = 1000, and today's default */
		{ 3651266, 3333 },	/* HZ = 300 */
		{ 6324555, 4000 },	/* HZ = 250 */
		{ 31622777, 10000 },	/* HZ = 100 */
		{ ~0ULL, 0 },
	};
	const struct peer_clock_length *length;

	for (length = known; measured_ns >= length->bound_ns; length++)
		;
	return length->tick_us;
}

static inline u32 peer_clock_tolerance_shift(u32 elapsed_us)
{
	if (elapsed_us < PEER_CLOCK_MEDIUM_US)
		return PEER_CLOCK_SHORT_SHIFT;
	if (elapsed_us < PEER_CLOCK_LONG_US)
		return PEER_CLOCK_MEDIUM_SHIFT;
	return PEER_CLOCK_LONG_SHIFT;
}

/* Tick length (us) over a baseline; ticks > 0, elapsed_us below 2^29. */
static inline u32 peer_clock_estimate_us(u32 elapsed_us, u32 ticks)
{
	u64 measured_ns = div_u64((u64)elapsed_us * 1000, ticks);
	u32 tick_us = peer_clock_nearest_us(measured_ns);
	u64 known_ns = tick_us * 1000ULL;
	u64 off_ns = measured_ns > known_ns ? measured_ns - known_ns :
					      known_ns - measured_ns;

	if (off_ns > known_ns >> peer_clock_tolerance_shift(elapsed_us))
		return 0;
	return tick_us;
}

/* Start a baseline here; the tick stays what it was. */
static inline void peer_clock_restart(struct peer_clock *pc, u32 ticks,
				      u32 now_units)
{
	pc->ref_units = now_units;
	pc->ref_ticks = ticks;
	pc->last_ticks = ticks;
	pc->check_shift = pc->check_shift ? PEER_CLOCK_LAST_SHIFT :
					    PEER_CLOCK_FIRST_SHIFT;
}

/* Further behind our clock than the return path's delay can explain? */
static inline bool peer_clock_lags(const struct peer_clock *pc, u64 elapsed_us)
{
	u64 peer_us = (u64)(pc->last_ticks - pc->ref_ticks) * pc->tick_us;

	return elapsed_us > peer_us + (elapsed_us >> PEER_CLOCK_LONG_SHIFT) +
			    PEER_CLOCK_LAG_US;
}

/* Not the clock it seemed to be: start over, and take longer. */
static inline void peer_clock_doubt(struct peer_clock *pc, u32 now_units)
{
	peer_clock_restart(pc, pc->last_ticks, now_units);
	peer_clock_set_tick(pc, 0);
	pc->check_shift = PEER_CLOCK_DOUBT_SHIFT;
}

/* The baseline is long enough: look at the tick. True if it changed. */
static inline bool peer_clock_check(struct peer_clock *pc, u32 elapsed_us)
{
	u32 ticks = pc->last_ticks - pc->ref_ticks;
	u32 before_us = pc->tick_us;

	if (ticks < PEER_CLOCK_MIN_TICKS)
		return false;
	peer_clock_set_tick(pc, peer_clock_estimate_us(elapsed_us, ticks));
	if (pc->check_shift < PEER_CLOCK_LAST_SHIFT)
		pc->check_shift++;
	else
		peer_clock_restart(pc, pc->last_ticks, pc->ref_units +
				   (elapsed_us >> PEER_CLOCK_UNIT_SHIFT));
	return pc->tick_us != before_us;
}

/**
 * peer_clock_start() - the first time stamp, or the first after a long silence
 * @pc: state
 * @ticks: the peer's time stamp, in its own ticks
 * @now_us: local time (us), never going back
 *
 * A tick that is known stays.
 */
static inline void peer_clock_start(struct peer_clock *pc, u32 ticks, u64 now_us)
{
	if (!pc->known) {
		peer_clock_set_tick(pc, 0);
		pc->check_shift = 0;
	}
	peer_clock_restart(pc, ticks, now_us >> PEER_CLOCK_UNIT_SHIFT);
}

/**
 * peer_clock_advance() - note a time stamp of the peer
 * @pc: state, once peer_clock_goes()
 * @ticks: the peer's time stamp, in its own ticks
 *
 * All that has to be done for each ACK. peer_clock_look() has to follow now and
 * then, once a round trip for example.
 *
 * Return: false if it is older than the newest (reordered ACK), and ignored.
 */
static inline bool peer_clock_advance(struct peer_clock *pc, u32 ticks)
{
	s32 moved_ticks = ticks - pc->last_ticks;

	if (moved_ticks < 0)
		return false;
	pc->last_ticks = ticks;
	pc->peer_us += (u32)moved_ticks * pc->tick_us;
	return true;
}

/**
 * peer_clock_look() - is the clock what it seems to be?
 * @pc: state
 * @ticks: the peer's newest time stamp, in its own ticks
 * @now_us: local time (us), never going back
 *
 * RFC 7323 section 5.4 (the clock's rate); JSCTP section 3.1.1 (why one-way).
 *
 * Return: true if peer_us must not be compared with earlier values.
 */
static inline bool peer_clock_look(struct peer_clock *pc, u32 ticks, u64 now_us)
{
	u32 now_units = now_us >> PEER_CLOCK_UNIT_SHIFT;
	u64 elapsed_us = (u64)(now_units - pc->ref_units)
			 << PEER_CLOCK_UNIT_SHIFT;

	/* first, or after a silence in which a 1 us clock may have wrapped */
	if (!pc->check_shift || elapsed_us >> (PEER_CLOCK_LAST_SHIFT + 1)) {
		peer_clock_start(pc, ticks, now_us);
		return true;
	}
	if (pc->known && peer_clock_lags(pc, elapsed_us)) {
		peer_clock_doubt(pc, now_units);
		return true;
	}
	return elapsed_us >> pc->check_shift &&
	       peer_clock_check(pc, elapsed_us);
}

/**
 * peer_clock_update() - take a time stamp of the peer into account
 * @pc: state
 * @ticks: the peer's time stamp, in its own ticks
 * @now_us: local time (us), never going back
 *
 * Return: see enum peer_clock_result.
 */
static inline enum peer_clock_result
peer_clock_update(struct peer_clock *pc, u32 ticks, u64 now_us)
{
	bool advanced = peer_clock_goes(pc) && peer_clock_advance(pc, ticks);

	if (peer_clock_look(pc, ticks, now_us))
		return PEER_CLOCK_CHANGED;
	return advanced ? PEER_CLOCK_OK : PEER_CLOCK_OLD;
}

#endif /* ESTIMATORS_PEER_CLOCK_H */

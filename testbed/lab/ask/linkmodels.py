# SPDX-License-Identifier: GPL-2.0-only
"""Links as people have them, made up: models of how rate, delay and loss change over time.

Each makes a trace of LENGTH_S from a seed. Parameters are from published measurements where there
are any (docs/traces.md says which), and their statistics are held against real traces there. A
model is a few lines of parameters below; what they mean is said where they are used.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

LENGTH_S = 300.0
FRAME_S = 0.01  # of LTE and NR: what a scheduler's decisions are added up over
SLOT_S = 15.0  # after which Starlink's scheduler moves terminals to other satellites
STARLINK_STEP_S = 0.05

# "seconds": how long each step lasts; "rate": Mb/s, "delay": ms one way, "loss": %
Trace = dict[str, np.ndarray]


def _wandering(dice: np.random.Generator, count: int, step_s: float, sd: float, memory_s: float):
    """Return an Ornstein-Uhlenbeck process of COUNT steps: Gaussian of standard deviation SD, with
    an autocorrelation that falls to 1/e in MEMORY_S."""
    keep = np.exp(-step_s / memory_s)
    noise = dice.normal(size=count) * sd * np.sqrt(1 - keep**2)
    noise[0] = dice.normal() * sd
    out = np.empty(count)
    value = 0.0
    for i in range(count):
        value = out[i] = keep * value + noise[i]
    return out


def _spells(dice: np.random.Generator, count: int, step_s: float, every_s: float, mean_s: float):
    """Return which of COUNT steps are within spells: an alternating renewal process, whose gaps
    have a mean of EVERY_S and whose spells of MEAN_S, both exponential."""
    within = np.zeros(count, dtype=bool)
    time_s = dice.exponential(every_s)
    while time_s < count * step_s:
        lasts_s = dice.exponential(mean_s)
        within[int(time_s / step_s) : int((time_s + lasts_s) / step_s) + 1] = True
        time_s += lasts_s + dice.exponential(every_s)
    return within


@dataclass(frozen=True)
class Lte:
    """A cell's share for one user. Three things multiply: shadowing, which changes with the place
    (its memory is the decorrelation distance over the speed), what other users take, and the
    scheduler from frame to frame; and there are outages: handovers, scheduling gaps, no cover."""

    mean_mbps: float
    shadow_sd: float  # of the rate's logarithm
    shadow_s: float
    load_sd: float  # of its logarithm
    load_s: float
    frame_cv: float  # from frame to frame, independent
    gaps: tuple[tuple[float, float], ...]  # of outages: s between them, s they last

    def make(self, dice: np.random.Generator) -> Trace:
        count = round(LENGTH_S / FRAME_S)
        slow = _wandering(dice, count, FRAME_S, self.shadow_sd, self.shadow_s)
        load = _wandering(dice, count, FRAME_S, self.load_sd, self.load_s)
        spread = (self.shadow_sd**2 + self.load_sd**2) / 2  # so that the mean stays
        shape = self.frame_cv**-2
        rate = np.exp(slow + load - spread) * dice.gamma(shape, 1 / shape, count)
        for every_s, mean_s in self.gaps:
            rate[_spells(dice, count, FRAME_S, every_s, mean_s)] = 0
        return _steps(FRAME_S, rate=self.mean_mbps * rate)


@dataclass(frozen=True)
class MmWave:
    """A beam in sight of its base station, and what is left when a body is in between: the
    reflections, or the carrier below 6 GHz."""

    sight_mbps: float
    blocked_mbps: float
    passers: tuple[float, float]  # s between them, s they block
    turns: tuple[float, float]  # the user's own body: the same

    def make(self, dice: np.random.Generator) -> Trace:
        count = round(LENGTH_S / FRAME_S)
        blocked = _spells(dice, count, FRAME_S, *self.passers)
        blocked |= _spells(dice, count, FRAME_S, *self.turns)
        wander = np.exp(_wandering(dice, count, FRAME_S, 0.25, 2.0) - 0.25**2 / 2)
        frames = dice.gamma(16, 1 / 16, count)
        return _steps(
            FRAME_S, rate=np.where(blocked, self.blocked_mbps, self.sight_mbps) * wander * frames
        )


@dataclass(frozen=True)
class Starlink:
    """Every SLOT_S another satellite, and with it another rate and another way; many of these
    handovers lose packets in a burst."""

    mean_mbps: float
    slot_sd: float  # of the rate's logarithm, from slot to slot
    delay_ms: tuple[float, float]  # one way, least and most of slots
    lossy: float  # share of handovers that lose
    slot_loss_pct: tuple[float, float]  # of a slot's packets those lose, least and most
    burst_s: float  # in its first so many seconds

    def make(self, dice: np.random.Generator) -> Trace:
        per_slot, slots = round(SLOT_S / STARLINK_STEP_S), round(LENGTH_S / SLOT_S)
        count = per_slot * slots
        level = dice.normal(-(self.slot_sd**2) / 2, self.slot_sd, slots)
        within = _wandering(dice, count, STARLINK_STEP_S, 0.2, 1.0) - 0.2**2 / 2
        rate = self.mean_mbps * np.exp(np.repeat(level, per_slot) + within)
        delay = np.repeat(dice.uniform(*self.delay_ms, slots), per_slot)
        delay += np.abs(_wandering(dice, count, STARLINK_STEP_S, 1.5, 0.5))
        lost = np.exp(dice.uniform(*np.log(self.slot_loss_pct), slots))
        lost *= dice.random(slots) < self.lossy
        burst = np.arange(per_slot) < round(self.burst_s / STARLINK_STEP_S)
        loss = np.outer(lost * SLOT_S / self.burst_s, burst).ravel()
        return _steps(STARLINK_STEP_S, rate=rate, delay=delay, loss=np.minimum(loss, 100))


@dataclass(frozen=True)
class WifiContended:
    """One station among others that come and go. Each transmission opportunity goes to any of
    those that have something to send; in its own the station sends one aggregate."""

    rate_mbps: float  # while it sends
    rate_sd: float  # of the logarithm: rate control
    others: float  # that send, on average
    on_s: float  # so long each
    opportunity_s: tuple[float, float]
    overhead_s: float  # of each: backoff, preamble, block ACK

    def make(self, dice: np.random.Generator) -> Trace:
        seconds, mine, time_s = [], [], 0.0
        active, change_s = dice.poisson(self.others), 0.0
        while time_s < LENGTH_S:
            if time_s >= change_s:  # a birth-death process: Poisson with mean OTHERS
                births, deaths = self.others / self.on_s, active / self.on_s
                if change_s:
                    active += 1 if dice.random() * (births + deaths) < births else -1
                change_s = time_s + dice.exponential(1 / (births + active / self.on_s))
            seconds += [self.overhead_s, dice.uniform(*self.opportunity_s)]
            mine += [False, dice.integers(active + 1) == 0]
            time_s += seconds[-1] + seconds[-2]
        level = _wandering(dice, len(mine), LENGTH_S / len(mine), self.rate_sd, 5.0)
        rate = self.rate_mbps * np.exp(level - self.rate_sd**2 / 2)
        return {"seconds": np.array(seconds), "rate": np.where(mine, rate, 0.0)}


@dataclass(frozen=True)
class Poisson:
    """Frames of 1500 bytes, each so long after the one before as chance has it: how Pantheon fits
    slow links."""

    mean_mbps: float

    def make(self, dice: np.random.Generator) -> Trace:
        mean_s = 1500 * 8e-6 / self.mean_mbps
        seconds = np.maximum(dice.exponential(mean_s, round(LENGTH_S / mean_s)), mean_s / 100)
        seconds *= LENGTH_S / seconds.sum()
        return {"seconds": seconds, "rate": 1500 * 8e-6 / seconds}


def _steps(step_s: float, **values: np.ndarray) -> Trace:
    count = len(next(iter(values.values())))
    return {"seconds": np.full(count, step_s), **values}


MODELS: dict[str, tuple[str, Callable[[np.random.Generator], Trace]]] = {
    "lte-walking": (
        "LTE downlink, on foot in a city",
        Lte(10, 0.22, 36, 0.30, 0.6, 0.6, gaps=((50, 0.7),)).make,
    ),
    "lte-car": (
        "LTE downlink, in a car at 50 km/h",
        Lte(5, 0.45, 3.6, 0.55, 0.8, 1.1, gaps=((4, 0.2), (60, 1.0))).make,
    ),
    "lte-subway": (
        "LTE downlink, underground: stations, tunnels without cover",
        Lte(8, 0.40, 5, 0.50, 0.8, 0.9, gaps=((6, 0.25), (45, 4.0))).make,
    ),
    "lte-uplink": (
        "LTE uplink, in a car: grants come and go",
        Lte(4, 0.35, 5, 0.45, 1.0, 1.2, gaps=((5, 0.25), (60, 1.5))).make,
    ),
    "nr-mmwave": (
        "5G above 24 GHz, one carrier, people pass between",
        MmWave(400, 30, passers=(5, 0.35), turns=(30, 3)).make,
    ),
    "starlink": (
        "Starlink downlink: other satellites every 15 s, losses in bursts",
        Starlink(100, 0.35, (14, 26), 0.7, (0.5, 6), 0.9).make,
    ),
    "wifi-contended": (
        "Wi-Fi with about three others that send",
        WifiContended(120, 0.2, 3, 4.0, (0.001, 0.004), 0.00025).make,
    ),
    "pantheon-nepal": ("0.57 Mb/s, Poisson: Wi-Fi in Nepal to India", Poisson(0.57).make),
    "pantheon-mexico": ("2.64 Mb/s, Poisson: cellular in Mexico", Poisson(2.64).make),
    "pantheon-colombia": ("3.04 Mb/s, Poisson: cellular in Colombia", Poisson(3.04).make),
}


def make(name: str, seed: int) -> Trace:
    """Return the trace that the model NAME makes of SEED."""
    return MODELS[name][1](np.random.Generator(np.random.PCG64(seed)))

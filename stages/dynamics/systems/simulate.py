"""A system run: members side by side, let in, observed at equal times; and its largest Lyapunov
exponent by tangent dynamics.

A direction is carried by the exact derivative of the scheme and set back to length 1 now and then;
the logarithms of its growth, over time, are the exponent (Benettin et al. 1980). Members are
independent, so the spread of their exponents gives the interval. Shapes: E members, T times,
O observed, D numbers of a state. Time in the system's units, exponents in its inverse.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

Array = np.ndarray


class System(Protocol):
    """What is asked of a system."""

    @property
    def size(self) -> int:
        """D."""

    @property
    def observed(self) -> int:
        """O."""

    def step(self, state: Array, dt: float) -> Array:
        """States (D, E) one step on."""

    def step_tangent(self, state: Array, along: Array, dt: float) -> tuple[Array, Array]:
        """States and directions (D, E) one step on."""

    def observe(self, state: Array) -> Array:
        """(D, E) -> (E, O)."""

    def begin(self, members: int, rng: np.random.Generator) -> Array:
        """Random states (D, E)."""


@dataclass(frozen=True)
class Run:
    """How a system is run: solver steps of length dt, an observation every `every` of them, a
    whole state kept at every `keep`-th observation, the first `transient` steps dropped."""

    members: int
    dt: float
    every: int
    keep: int
    transient: int
    samples: int


def observe(system: System, run: Run, rng: np.random.Generator) -> tuple[Array, Array]:
    """Observations (E, T, O) and the whole states kept (E, T / keep, D)."""
    state = system.begin(run.members, rng)
    for _ in range(run.transient):
        state = system.step(state, run.dt)
    seen = np.empty((run.members, run.samples, system.observed))
    kept = np.empty((run.members, -(-run.samples // run.keep), system.size))
    for sample in range(run.samples):
        seen[:, sample] = system.observe(state)
        if sample % run.keep == 0:
            kept[:, sample // run.keep] = state.T
        for _ in range(run.every):
            state = system.step(state, run.dt)
    return seen, kept


def carry_on(system: System, states: Array, dt: float, every: int, samples: int) -> Array:
    """Observations (samples, E, O) after states (E, D): one every `every` steps of length dt."""
    state, seen = np.ascontiguousarray(states.T), []
    for _ in range(samples):
        for _ in range(every):
            state = system.step(state, dt)
        seen.append(system.observe(state))
    return np.stack(seen)


def growth(
    system: System, states: Array, dt: float, spans: int, steps: int, rng: np.random.Generator
) -> Array:
    """How much a direction grows: logarithms (E, spans), each over `steps` steps from states
    (E, D) on; two more spans before them turn it to the fastest one."""
    state = np.ascontiguousarray(states.T)
    along = rng.standard_normal(state.shape)
    found = np.empty((state.shape[1], spans + 2))
    for span in range(spans + 2):
        along /= np.sqrt((along**2).sum(0))
        for _ in range(steps):
            state, along = system.step_tangent(state, along, dt)
        found[:, span] = 0.5 * np.log((along**2).sum(0))
    return found[:, 2:]


def exponent(grown: Array, span: float) -> tuple[float, float]:
    """The largest exponent and its standard error, from logarithms (E, spans) of a span's time."""
    each = grown.mean(1) / span
    return float(each.mean()), float(each.std(ddof=1) / np.sqrt(len(each)))

"""What the joint nowcast should show (our own, O2) as checks: holds, fails or undecided.

Errors are compared by their squares, task by task (stages/claims/paired.py), with the spread of
training. A cell that errs as much as the mean wind has not learned: what rests on it is `undecided`
and says `untrained`.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from stages.claims.levels import Side, against, level
from stages.claims.paired import PairedEvaluation, difference, evaluations
from stages.claims.parts import UNDECIDED, Part, conclude, unmeasured
from stages.scores import items
from stages.spreads import kind_of
from stages.winds.joint.layout import INCREMENTS, KRIGING, LINEAR, OPTIMUM, PRIOR

MSE, OVER = ("metrics", "mse"), ("metrics", "over_optimum")
MODEL = "joint_tnp"
NEAR = 1.15  # times the optimum's error: what the design asks for
SOURCE = "our own, O2"


def arm(measured: PairedEvaluation, reads: str) -> str:
    """The arm that reads so, in the size that was trained here; its name whole where none was."""
    wanted = f"{MODEL}-{reads}"
    found = [name for name in measured.model(MODEL) if name.rpartition("-")[0] == wanted]
    return found[0] if found else wanted


def learned(part: Part, measured: PairedEvaluation, arms: Sequence[str]) -> Part:
    """The part, undecided where a trained arm errs as much as the mean wind."""
    bar, lags = level(measured, Side(PRIOR, MSE), False), []
    for one in arms:
        cells, found = measured.arm(one), level(measured, Side(one, MSE), False)
        if bar and found and kind_of(cells[0]) and found.value >= bar.value:
            lags.append(f"{one} errs as much as the {PRIOR}")
    if not lags:
        return part
    told = part.why.removeprefix(f"{part.name}: ")
    return replace(
        part,
        verdict=UNDECIDED,
        numbers=part.numbers | {"verdict": UNDECIDED, "untrained": lags},
        why=f"{part.name}: untrained: {'; '.join(lags)}; measured: {told}",
    )


def below(measured: PairedEvaluation, one: str, other: str) -> Part:
    """`one` errs less than `other`."""
    name = f"{one} errs less than {other}"
    part = difference(measured, name, Side(one, MSE), Side(other, MSE), 0.0, False)
    return learned(part, measured, (one, other))


def real(measured: PairedEvaluation) -> bool:
    """Whether the sky is real: no optimum is known of it."""
    return OPTIMUM not in measured.cells


def sources(measured: PairedEvaluation) -> dict[Any, Any]:
    """The network of both against each of its ablations and what is classical of one source."""
    both, parts = arm(measured, "both"), []
    for reads in ("aircraft", "grid"):
        parts.append(below(measured, both, arm(measured, reads)))
    parts += [below(measured, both, one) for one in (LINEAR, KRIGING) if one in measured.cells]
    text = "Aircraft winds and a late weather grid together nowcast better than either alone."
    wind = "a reanalysis's wind, one day of it" if real(measured) else "simulated wind"
    note = f"squared errors, m²/s² a component, on {wind}"
    return conclude(measured, "O2-1", text, SOURCE, parts, note)


def optimal(measured: PairedEvaluation) -> dict[Any, Any]:
    """Its error over that of the exact law."""
    both = arm(measured, "both")
    name = f"{both} errs at most {NEAR:g} times as much as the {OPTIMUM}"
    text = "The joint network comes within 1.15 times the least possible error on simulated wind."
    if real(measured):
        part = unmeasured(name, f"{name}: no exact law is known of a real sky, so no optimum")
        return conclude(measured, "O2-2", text, SOURCE, [part])
    part = against(measured, name, Side(both, OVER), NEAR, False, "ratio of rmse")
    return conclude(measured, "O2-2", text, SOURCE, [learned(part, measured, (both,))])


def classical(measured: PairedEvaluation) -> dict[Any, Any]:
    """The network against kriging of the increments."""
    parts = [below(measured, arm(measured, "both"), INCREMENTS)]
    text = "The joint network beats kriging of the increments, which is what assimilation does."
    form = (
        "the increments' law is fitted to the strips that train"
        if real(measured)
        else "the increments' law has the form of the simulated wind's, which favours kriging"
    )
    note = f"{form}; the network trains for seconds"
    return conclude(measured, "O2-3", text, SOURCE, parts, note)


def check(home: Path) -> list[dict[Any, Any]]:
    """Every claim of every set under `home`."""
    found = evaluations(home, items.read)
    return [
        claim(measured) for measured in found.values() for claim in (sources, optimal, classical)
    ]

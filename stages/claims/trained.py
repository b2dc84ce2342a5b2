"""Whether a trained model may decide a claim.

A model that is no better than the mean, that answers alike when its context's values change places,
or, where it is compared with other models, that is no better than the plainest of them (CNP), has
not learned what a claim about reading a context is about: more training might turn the verdict. A
part that rests on such a model is undecided, and says `untrained`. Each of the three is asked of a
90 % interval: what may be chance is no proof of learning.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from stages.claims.levels import Level, Side, half_width, level
from stages.claims.parts import UNDECIDED, Evaluation, Part
from stages.spreads import kind_of

PLAINEST = "cnp"
FELL = 0.02  # of a loss, between two validations: it has not come to its end
ALIKE = 1.2  # times the error: more is called a difference, though its seeds leave it unsure


@dataclass(frozen=True)
class Marks:
    """Where an evaluation tells what a model has learned: its error, the error from a shuffled
    context, and its skill against the mean (1: exact, 0: as the mean)."""

    error: tuple[str, ...]
    shuffled: tuple[str, ...]
    skill: tuple[str, ...]


def beyond(levels: list[Level], value: float, bar: float) -> bool:
    """Whether a sum or difference of levels lies above the bar with its whole 90 % interval; where
    nothing tells its width, the number itself must."""
    return value - (half_width(levels) or 0.0) > bar


def untrained(measured: Evaluation, arm: str, marks: Marks, rival: str = "") -> str:
    """Why an arm decides no claim, "" where it may: nothing was trained, it has learned, or what
    would tell was not measured. `rival`: an arm that it must be better than, "" for none."""
    cells = measured.arm(arm)
    if not cells or not kind_of(cells[0]):
        return ""
    skill = level(measured, Side(arm, marks.skill), logarithm=False)
    if skill and not beyond([skill], skill.value, 0.0):
        return f"{arm} is not surely better than the mean"
    error, shuffled = (level(measured, Side(arm, path)) for path in (marks.error, marks.shuffled))
    if error and shuffled and not beyond([error, shuffled], shuffled.value - error.value, 0.0):
        ratio = math.exp(shuffled.value - error.value)
        words = "errs alike" if ratio < ALIKE else "does not surely err more"
        return f"{arm} {words} when its context is shuffled (x {ratio:.3g})"
    other = level(measured, Side(rival, marks.error)) if rival else None
    if error and other and not beyond([error, other], other.value - error.value, 0.0):
        return f"{arm} is not surely better than {rival}"
    return ""


def decided(part: Part, measured: Evaluation, arms: list[str], marks: Marks) -> Part:
    """The part, undecided where one of its arms has not learned enough to decide it."""
    models = {arm.split("-")[0] for arm in arms}
    plain = next(iter(measured.model(PLAINEST)), "") if len(models) > 1 else ""
    rivals = {arm: "" if arm.startswith(PLAINEST) else plain for arm in arms}
    reasons = [why for arm in arms if (why := untrained(measured, arm, marks, rivals[arm]))]
    return withheld(part, reasons)


def falling(measured: Evaluation, arms: Iterable[str]) -> list[str]:
    """Which arms' validation losses still fell by more than FELL between their last two
    validations, in a cell of theirs: a sentence each."""
    found = []
    for arm in dict.fromkeys(arms):
        for cell in measured.arm(arm):
            curve = measured.cells[cell].get("history", {}).get("val", [])
            if len(curve) > 1 and curve[-1][1] < (1 - FELL) * curve[-2][1]:
                found.append(f"the validation loss of {arm} still fell at its last step")
                break
    return found


def steps_of(measured: Evaluation, arm: str) -> int:
    """The most steps that a cell of an arm was trained for, by its last validation; 0 where no
    history tells."""
    curves = (measured.cells[cell].get("history", {}).get("val") for cell in measured.arm(arm))
    return max((int(one[-1][0]) for one in curves if one), default=0)


def fair(part: Part, measured: Evaluation, arms: Iterable[str]) -> Part:
    """The part, undecided where its models did not train for the same number of steps."""
    known = {arm: steps for arm in arms if (steps := steps_of(measured, arm))}
    if len({*known.values()}) < 2:
        return part
    told = part.why.removeprefix(f"{part.name}: ")
    apart = ", ".join(f"{arm} has {steps:,}" for arm, steps in known.items())
    numbers = part.numbers | {"verdict": UNDECIDED, "steps": known}
    why = f"{part.name}: steps: {apart}; measured: {told}"
    return replace(part, verdict=UNDECIDED, numbers=numbers, why=why)


def withheld(part: Part, reasons: list[str]) -> Part:
    """The part, undecided where there are reasons to think that more training might turn it."""
    if not reasons:
        return part
    told = part.why.removeprefix(f"{part.name}: ")
    return replace(
        part,
        verdict=UNDECIDED,
        numbers=part.numbers | {"verdict": UNDECIDED, "untrained": reasons},
        why=f"{part.name}: untrained: {'; '.join(reasons)}; measured: {told}",
    )

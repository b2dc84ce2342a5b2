"""Claim A-5 (thesis 4.3.6, figure 4.5): in random order memorisation lasts to larger data sets than
from left to right.

It is decided on a family: data sets of one kind whose validation and test sequences are the same
(`held_out`), so that they differ in their training sequences alone. An arm's gap is its accuracy on
training prompts less that on test prompts. At a size an arm `memorises` where the gap is above
half, `generalises` where it is below half and more than half of the training prompts are answered,
and has learned neither where at most half of those are. The claim is asked at the smallest size at
which GPT generalises: there random order should still memorise. The size is chosen by GPT alone, so
that random order's interval is not one of the best of several.
Units: shares of samples; 90 % intervals as in stages/claims/levels.py.
"""

from dataclasses import dataclass
from typing import Any

from stages.claims.levels import Level, Side, difference, level
from stages.claims.parts import Part, conclude, unmeasured
from stages.sequences.comparisons import GPT, RANDOM, Ordered, share_of

# of the samples: 1k mazes are printed as 'perfect' on training and 'very low' on validation mazes,
# 100k as alike on both
HALF = 0.5
TEXT, SOURCE = "In random order memorisation lasts to larger data sets.", "thesis, figure 4.5"
NOTE = (
    f"to memorise is read as answering at least {HALF:g} more of the training than of the test "
    "prompts; asked at the smallest data set at which GPT no longer does"
)


def state(train: float, test: float) -> str:
    """What a model does that answers these shares of training and of test prompts: memorises,
    generalises, or has learned neither."""
    if train <= HALF:
        return "neither"
    return "memorises" if train - test > HALF else "generalises"


@dataclass(frozen=True)
class Recall:
    """One arm at one size: what it answers of training and of test prompts."""

    dataset: str
    size: int  # training sequences
    train: Level
    test: Level

    @property
    def state(self) -> str:
        """In a word: memorises, generalises, or has learned neither."""
        return state(self.train.value, self.test.value)


def families(found: list[Ordered]) -> list[list[Ordered]]:
    """Data sets that differ in their training sequences alone, by rising number of them: each
    two or more, measured on training prompts."""
    alike: dict[tuple[str, str], list[Ordered]] = {}
    for one in found:
        if one.held_out and any("memorised" in cell for cell in one.cells.values()):
            alike.setdefault((one.kind, one.held_out), []).append(one)
    ranked = (
        sorted(members, key=lambda one: (one.sequences["train"], one.dataset))
        for members in alike.values()
    )
    return [members for members in ranked if len({one.sequences["train"] for one in members}) > 1]


def sides(measured: Ordered, arm: str) -> tuple[Side, Side]:
    """Where the quality of an arm's samples stands: of training prompts, of test prompts."""
    return Side(arm, ("memorised", share_of(measured.kind))), measured.side(arm)


def recall(measured: Ordered, arm: str) -> Recall | None:
    """An arm's accuracies on a data set; None where one was not measured."""
    train, test = (level(measured, side, False) for side in sides(measured, arm))
    return (
        Recall(measured.dataset, measured.sequences["train"], train, test)
        if train and test
        else None
    )


def turned(family: list[Ordered], arm: str) -> Ordered | None:
    """The smallest data set at which an arm generalises; None where it does at none."""
    found = ((one, recall(one, arm)) for one in family)
    return next((one for one, told in found if told and told.state == "generalises"), None)


def still(family: list[Ordered], gpt: str, arm: str) -> list[Part]:
    """The parts of one pair of arms: where GPT first generalises it does, and there the other
    still memorises."""
    name = f"{arm} still memorises where {gpt} generalises"
    absent = [one for one in (gpt, arm) if not any(recall(measured, one) for measured in family)]
    if absent:
        return [
            unmeasured(
                name,
                f"{name}: no {' and no '.join(absent)} with samples of training and test prompts "
                "here",
            )
        ]
    sizes = ", ".join(f"{measured.sequences['train']:,}" for measured in family)
    measured = turned(family, gpt)
    if measured is None:
        return [
            unmeasured(name, f"{name}: {gpt} generalises at none of {sizes} training sequences")
        ]
    size, here = f"{measured.sequences['train']:,}", recall(measured, arm)
    if here is None:
        return [unmeasured(name, f"{name}: {arm} was not measured at {size} training sequences")]
    parts = [
        difference(measured, f"{gpt} generalises at {size}", *sides(measured, gpt), HALF, False)
    ]
    name = f"{arm} memorises at {size}"
    if here.state == "neither":
        why = (
            f"{name}: it answers {here.train.value:.3g} of the training prompts, so it neither "
            "memorises nor generalises after this profile's steps"
        )
        return [*parts, unmeasured(name, why)]
    return [*parts, difference(measured, name, *sides(measured, arm), HALF, True)]


def entries(sized: list[list[Ordered]]) -> list[dict[Any, Any]]:
    """The claim on every family, under the name of its largest data set; once, undecided, where
    there is none."""
    told = []
    for family in sized:
        last = family[-1]
        run = {
            pair: None
            for measured in family
            for pair in measured.pairs(GPT, RANDOM)
            if all(map(measured.arm, pair))
        }
        pairs = run or last.pairs(GPT, RANDOM)
        parts = [part for gpt, arm in pairs for part in still(family, gpt, arm)]
        told.append(
            conclude(
                last,
                "A-5",
                TEXT,
                SOURCE,
                parts,
                f"{NOTE}; data sets: {', '.join(one.dataset for one in family)}",
            )
        )
    why = (
        "training and test accuracy by the number of training sequences: no data sets of this "
        "profile differ in that alone"
    )
    return told or [
        conclude(Ordered("–", {}), "A-5", TEXT, SOURCE, [unmeasured("memorisation by size", why)])
    ]

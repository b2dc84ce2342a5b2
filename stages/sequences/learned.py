"""Whether a model of sequences has learned enough to decide a claim about its samples or densities.

A model of mazes that does not copy them answers no prompt; of other sequences one that is no better
than each place's training frequencies (`marginals`) has learned nothing of how tokens hang
together. Of independent tokens the marginals are the law, and nothing is asked. Diffusion is asked
by its bound of the likelihood. Where errors of flights are compared, a model must err less than an
altitude that is held; where paths of mazes are, it must solve some. Each is asked of a 90 %
interval: what may be chance is no proof of learning. What was not measured is no reason.
Units: shares of samples; nats a token.
"""

import math
from collections.abc import Iterable

from stages.claims.levels import Side, level
from stages.claims.parts import Part
from stages.claims.trained import beyond, withheld
from stages.sequences.comparisons import Ordered

COPIED = 0.5  # of the mazes: whoever copies fewer does not read them
UNIGRAM, HELD = "marginals", "persistence"


def untrained(measured: Ordered, arm: str) -> str:
    """Why an arm decides no claim, '' where it may."""
    if measured.kind == "maze":
        copied = level(measured, measured.side(arm, "copied"), logarithm=False)
        if copied and not beyond([copied], copied.value, COPIED):
            return f"{arm} copies {100 * copied.value:.3g} % of the mazes"
        return ""
    if measured.kind == "product":
        return ""
    name = "nats_bound" if arm.startswith("diffusion") else "nats"
    own, plain = (
        level(measured, Side(one, ("metrics", key)), logarithm=False)
        for one, key in ((arm, name), (UNIGRAM, "nats"))
    )
    if own and plain and not beyond([own, plain], plain.value - own.value, 0.0):
        return (
            f"{arm} needs {own.value:.3g} nats a token, not surely fewer than each place's "
            f"frequencies ({plain.value:.3g})"
        )
    return ""


def behind(measured: Ordered, arms: Iterable[str], prompt: str = "") -> list[str]:
    """Which models of flights err no less at a prompt than the altitude that stays as it is, or
    solve no maze: a sentence each; none of other sequences."""
    if measured.kind == "maze":
        solved = {arm: level(measured, measured.side(arm), logarithm=False) for arm in arms}
        return [
            f"{arm} solves {100 * own.value:.3g} % of the mazes"
            for arm, own in solved.items() if own and not beyond([own], own.value, 0.0)
        ]  # fmt: skip
    if measured.kind != "climb":
        return []
    held, found = level(measured, measured.side(HELD, prompt=prompt)), []
    for arm in arms:
        own = level(measured, measured.side(arm, prompt=prompt))
        if own and held and not beyond([own, held], held.value - own.value, 0.0):
            mine, plain = (f"errs by {math.exp(one.value):,.0f}" for one in (own, held))
            found.append(f"{arm} {mine} FL² where {HELD} {plain}")
    return found


def decided(measured: Ordered, part: Part, *arms: str) -> Part:
    """The part, undecided where one of the arms that it rests on has not learned."""
    reasons = [why for arm in dict.fromkeys(arms) if (why := untrained(measured, arm))]
    return withheld(part, reasons)

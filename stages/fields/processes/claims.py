"""Document N's claims as checks: holds, fails or undecided.

Likelihoods are compared in nats a target by their difference task by task
(stages/claims/paired.py), with the spread of training of data/spreads. A model that is not GAINED
better than the prior has not learned: what rests on it is `undecided`, and says `untrained`, but
where failing is what is claimed. Models that were trained for different numbers of steps are not
compared: such a part is `undecided`, and says `steps`. Words that name no number are read as the
bars below, and every entry says so.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from stages.claims.levels import Side, against, level
from stages.claims.paired import PairedEvaluation, difference, evaluations
from stages.claims.parts import Part, conclude, unmeasured, verdict_of
from stages.claims.trained import fair, withheld
from stages.fields.processes.layout import PRIOR
from stages.scores import items
from stages.spreads import kind_of

LL = ("metrics", "log_likelihood")
TIE = 0.1  # nats: on Gaussian processes models "tie", or "match", within them
LOST = 0.5  # nats of likelihood that a model loses where it "breaks"; one that does not loses less
KEPT = 0.05
GAINED = 0.25  # nats above the prior that a model reaches at least unless it "fails"
LESS = 0.25  # of the quadratic one's bytes: "far less"
LINEAR = ("tnp-linear", "tnp-hyper", "pseudo_tnp-perceiver", "pseudo_tnp-te_perceiver",
          "pseudo_tnp-induced", "pseudo_tnp-te_induced")  # fmt: skip
HALVED = ("w16_h4_d8", "w32_h2_d8", "w32_h4_d4")  # tokens, heads, heads' width: half of w32's
SAWTOOTHS = ("sawtooth_1d_slow", "sawtooth_1d")  # of a line: of few teeth, where it was trained on
BRIEF = "trained briefly, where the document trains for hours"


def sized(measured: PairedEvaluation, variant: str) -> dict[str, str]:
    """What was trained of a variant ('tnp-linear'): arm by size, that of the most weights first."""
    model, arm = variant.split("-")
    found = [name for name in measured.model(model) if name.split("-")[1:2] == [arm]]
    weights = {name: measured.cells[measured.arm(name)[0]].get("weights", 0) for name in found}
    return {name.split("-")[-1]: name for name in sorted(found, key=lambda one: -weights[one])}


def sides(measured: PairedEvaluation, path: tuple[str, ...], *variants: str) -> tuple[Side, ...]:
    """Variants in the largest size in which all of them were trained; in none, each in its own
    largest; a variant that was not trained by its name whole."""
    found = [sized(measured, variant) for variant in variants]
    common = next((size for size in found[0] if all(size in one for one in found)), "")
    return tuple(
        Side(one.get(common) or next(iter(one.values()), variant), path)
        for one, variant in zip(found, variants, strict=True)
    )


def side(measured: PairedEvaluation, variant: str, path: tuple[str, ...]) -> Side:
    """A variant in the largest size in which it was trained."""
    return sides(measured, path, variant)[0]


def learned(part: Part, measured: PairedEvaluation, arms: Iterable[str]) -> Part:
    """The part, undecided where one of its models is not GAINED better than the prior."""
    bar, lags = level(measured, Side(PRIOR, LL), False), []
    for arm in dict.fromkeys(arms):
        found = level(measured, Side(arm, LL), False) if measured.arm(arm) else None
        if bar and found and kind_of(measured.arm(arm)[0]) and found.value < bar.value + GAINED:
            lags.append(f"{arm} is not {GAINED:g} nats above the {PRIOR}")
    return withheld(part, lags)


def above(
    measured: PairedEvaluation, one: str, other: str, by: float = 0.0, path: tuple[str, ...] = LL
) -> Part:
    """`one` reaches more than `other` plus `by`; both learned, in equal steps."""
    left, right = sides(measured, path, one, other)
    more = f" by {by:g}" if by else ""
    name = f"{measured.dataset}: {left.arm} > {right.arm}{more}"
    part = difference(measured, name, left, right, by, True)
    arms = left.arm, right.arm
    return learned(fair(part, measured, arms), measured, arms)


def near(measured: PairedEvaluation, one: str, other: str) -> Part:
    """`one` lies not more than TIE below `other`; both learned, in equal steps."""
    left, right = sides(measured, LL, one, other)
    name = f"{measured.dataset}: {left.arm} within {TIE:g} of {right.arm}, or above"
    part = difference(measured, name, left, right, -TIE, True)
    arms = left.arm, right.arm
    return learned(fair(part, measured, arms), measured, arms)


def fits(measured: PairedEvaluation, one: str) -> Part:
    """A model reaches GAINED above the prior."""
    arm = side(measured, one, LL)
    name = f"{measured.dataset}: {arm.arm} fits, {GAINED:g} nats above the prior"
    part = difference(measured, name, arm, Side(PRIOR, LL), GAINED, True)
    return learned(part, measured, (arm.arm,))


def fails(measured: PairedEvaluation, one: str) -> Part:
    """It does not."""
    arm = side(measured, one, LL)
    name = f"{measured.dataset}: {arm.arm} fails, within {GAINED:g} nats of the prior"
    return difference(measured, name, arm, Side(PRIOR, LL), GAINED, False)


def loses(measured: PairedEvaluation, one: str, how: str, logarithm: bool = False) -> Part:
    """A model's likelihood falls by more than LOST where all points are moved. `logarithm`: it
    falls by nats that differ by factors from one training to another."""
    lost = side(measured, one, ("metrics", f"lost_{how}"))
    name = f"{measured.dataset}: {lost.arm} loses more than {LOST:g} nats where {how}"
    part = against(measured, name, lost, LOST, True, "nats", logarithm)
    return learned(part, measured, (lost.arm,))


def keeps(measured: PairedEvaluation, one: str, how: str) -> Part:
    """It falls by less than KEPT, of a model that is equivariant whatever its weights are: no
    training moves the number, so its interval is that over tasks."""
    lost = side(measured, one, ("metrics", f"lost_{how}"))
    name = f"{measured.dataset}: {lost.arm} loses less than {KEPT:g} nats where {how}"
    cells = measured.arm(lost.arm)
    if not cells:
        return unmeasured(name, f"{name}: no trained {lost.arm} here")
    told = [measured.cells[cell]["metrics"][lost.path[1]] for cell in cells]
    low, high = min(entry["low"] for entry in told), max(entry["high"] for entry in told)
    verdict = verdict_of(low, high, KEPT, above=False)
    numbers = {"value": told[0]["value"], "bar": KEPT, "interval": [low, high], "verdict": verdict}
    why = f"{name}: {told[0]['value']:.2g}, 90 % interval over tasks [{low:.2g}, {high:.2g}]"
    return learned(Part(name, verdict, numbers, why), measured, (lost.arm,))


def of(found: dict[str, PairedEvaluation], dataset: str) -> PairedEvaluation:
    """A set's evaluation; one without cells where it was not evaluated."""
    return found.get(dataset, PairedEvaluation(dataset, {}))


def sawtooth(found: dict[str, PairedEvaluation]) -> PairedEvaluation:
    """That of the first of SAWTOOTHS that was evaluated."""
    return of(found, next((name for name in SAWTOOTHS if name in found), SAWTOOTHS[-1]))


def p1(found: dict[str, PairedEvaluation]) -> dict[Any, Any]:
    """Functions of a difference, against each other."""
    saw = of(found, "sawtooth_1d")
    parts = [above(saw, "tetnp-post", "tetnp-rbf"), above(saw, "tetnp-rbf", "tetnp-identity")]
    text = "An MLP as relative function beats an RBF, which beats the identity."
    return conclude(saw, "P-1", text, "tetnp, figure 5.2.1", parts, BRIEF)


def p2(found: dict[str, PairedEvaluation]) -> dict[Any, Any]:
    """The sawtooth and the Gaussian process."""
    saw, eq = sawtooth(found), of(found, "eq_1d")
    parts = [above(saw, "tetnp-post", other) for other in ("tnp-attention", "convcnp-plain")]
    parts += [near(eq, "tetnp-post", other) for other in ("tnp-attention", "convcnp-plain")]
    note = f"'ties' is read as not more than {TIE:g} nats below; {BRIEF}"
    text = "TETNP beats TNP and ConvCNP on the sawtooth and ties with them on Gaussian processes."
    return conclude(saw, "P-2", text, "tetnp, figure 5.4.1", parts, note)


def p3(found: dict[str, PairedEvaluation]) -> dict[Any, Any]:
    """All points shifted."""
    eq = of(found, "eq_1d")
    parts = [
        loses(eq, "tnp-attention", "shifted"),
        keeps(eq, "tetnp-post", "shifted"),
        keeps(eq, "convcnp-plain", "shifted"),
    ]
    note = f"'breaks' is read as losing more than {LOST:g} nats, 'does not' as less than {KEPT:g}"
    text = "TNP breaks when inputs are shifted; TETNP and ConvCNP do not."
    return conclude(eq, "P-3", text, "tetnp, figure 4.2.2", parts, note)


def p4(found: dict[str, PairedEvaluation]) -> dict[Any, Any]:
    """Where the MLP stands."""
    plane = of(found, "sawtooth_2d")
    parts = [above(plane, "tetnp-post", "tetnp-pre")]
    text = "The post-MLP beats the pre-MLP in two dimensions."
    return conclude(plane, "P-4", text, "tetnp, figure 6.2.1", parts, BRIEF)


def p5(found: dict[str, PairedEvaluation]) -> dict[Any, Any]:
    """A plane turned."""
    plane = of(found, "sawtooth_2d")
    parts = [keeps(plane, "tetnp-turned", "turned"), loses(plane, "tetnp-post", "turned", True)]
    note = (
        f"'carries over' is read as losing less than {KEPT:g} nats, 'does not' more than {LOST:g}"
    )
    text = (
        "A rotation-equivariant TETNP trained on the restricted sawtooth carries over to the "
        "turned one; the plain one does not."
    )
    return conclude(plane, "P-5", text, "tetnp, figures 6.3.3 and 6.3.4", parts, note)


def p6(found: dict[str, PairedEvaluation]) -> dict[Any, Any]:
    """Sawtooths of the plane along its diagonals, and in any direction."""
    plane, full = of(found, "sawtooth_2d"), of(found, "sawtooth_2d_full")
    parts = [fits(plane, "convcnp-plain"), fails(full, "convcnp-plain")]
    note = f"'fits' is read as {GAINED:g} nats above the prior, 'fails' as less; {BRIEF}"
    text = "ConvCNP fits the restricted sawtooth and fails on the full one."
    return conclude(plane, "P-6", text, "tetnp, figures 6.3.2 and 6.3.5", parts, note)


def p7(found: dict[str, PairedEvaluation]) -> dict[Any, Any]:
    """What is linear in the points, against TETNP, and on the sawtooth against the prior."""
    eq, saw = of(found, "eq_1d"), sawtooth(found)

    def trained(where: PairedEvaluation) -> list[str]:
        return [one for one in LINEAR if where.arm(side(where, one, LL).arm)]

    parts = [near(eq, one, "tetnp-post") for one in trained(eq)]
    parts += [fails(saw, one) for one in trained(saw)]
    for name, where in (("Gaussian process", eq), ("sawtooth", saw)):
        if not trained(where):
            parts.append(unmeasured(name, f"{name}: no linear model was trained on it here"))
    note = (
        f"'match' is read as not more than {TIE:g} nats below TETNP, 'fail' as less than "
        f"{GAINED:g} above the prior; the document's sawtooth is of the plane; {BRIEF}"
    )
    text = "Neural processes of linear cost match on Gaussian processes and fail on the sawtooth."
    return conclude(eq, "P-7", text, "tetnp, table 7.5.1", parts, note)


def p8(found: dict[str, PairedEvaluation]) -> dict[Any, Any]:
    """Bytes counted, at the largest context and the fewest targets that were counted."""
    eq, parts = of(found, "eq_1d"), []
    for one in (*LINEAR, "tetnp-post"):
        arm, whole = sides(eq, ("metrics", "memory_1000_10"), one, "tetnp-post")
        most = [eq.cells[cell]["metrics"].get("memory_whole_1000_10") for cell in eq.arm(whole.arm)]
        if eq.arm(arm.arm) and most and most[0]:
            bytes_of = most[0]["value"]
            words = f"bytes at 1,000 context points [MB], against {LESS:g} of {bytes_of:.3g}"
            title = f"{arm.arm} far below TETNP with all pairs at once"
            parts.append(_counted(eq, title, arm, LESS * bytes_of, words))
    if not parts:
        parts = [unmeasured("bytes", "bytes: nothing was counted here")]
    note = (
        f"'far less' is read as below {LESS:g} of TETNP's bytes as printed, all pairs at once; in "
        "blocks TETNP itself is linear, so the claim is one of the printed form; that ConvCNP's "
        "grid grows with the axes, tests/processes/test_laws_of_processes.py counts"
    )
    text = "Linear neural processes need far less memory than the quadratic TETNP."
    return conclude(eq, "P-8", text, "tetnp, tables 5.4.1, 6.4.1 and 7.5.2", parts, note)


def _counted(measured: PairedEvaluation, name: str, one: Side, bar: float, words: str) -> Part:
    """A part about bytes, which no training moves: they are a count."""
    value = measured.cells[measured.arm(one.arm)[0]]["metrics"][one.path[-1]]["value"]
    verdict = "holds" if value < bar else "fails"
    numbers = {"value": value, "bar": bar, "interval": [value, value], "verdict": verdict}
    return Part(name, verdict, numbers, f"{name}: {words}: {value:.3g}")


def p9(found: dict[str, PairedEvaluation]) -> dict[Any, Any]:
    """Half of the tokens' width, half of the heads, half of their width."""
    saw, parts = of(found, "sawtooth_1d"), []
    tokens, heads, widths = (f"tetnp-post-{size}" for size in HALVED)
    for less, more in ((heads, tokens), (widths, heads)):
        name = f"sawtooth_1d: {less} > {more}"
        part = difference(saw, name, Side(less, LL), Side(more, LL), 0.0, True)
        parts.append(learned(fair(part, saw, (less, more)), saw, (less, more)))
    note = (
        "'matters' is read as the likelihood that a TETNP of 32 numbers a token, 4 heads and 8 "
        f"numbers a head loses with half of one of them; {BRIEF}"
    )
    text = "The width of tokens matters most, then the number of heads, their width least."
    return conclude(saw, "P-9", text, "tetnp, figure 5.3.1", parts, note)


def check(home: Path) -> list[dict[Any, Any]]:
    """Every claim, from all sets under `home`."""
    found = evaluations(home, items.read)
    return [claim(found) for claim in (p1, p2, p3, p4, p5, p6, p7, p8, p9)]

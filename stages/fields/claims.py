"""The documents' claims about sets of points (thesis 3.4, 3.5, C.5, C.8, C.11) as checks: holds,
fails or undecided.

A part compares two arms by the ratio of their errors (MSE on test sets; or updates), or one arm
with a bar; all in logarithms, with the levels and intervals of stages/claims/levels.py.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from stages.claims.levels import Side, judged, level
from stages.claims.parts import Part, conclude, unmeasured
from stages.claims.trained import decided, falling, withheld
from stages.fields.comparisons import MARKS, Evaluated, beyond, each, ratio, solved
from stages.files import read_json
from stages.spreads import Spreads

SOLVED = 0.01  # MSE below which the task of copying counts as learned (thesis, figure 3.4)
PLANTED = "the document plants the error in models that have solved their task, a smooth function"
# "a wide margin": half, in the logarithm, of the smaller printed factor (table C.2: TFS .010 to MSA
# .007)
WIDE = (0.010 / 0.007) ** 0.5
FEW = 4  # nodes: a GEN of no more has not many to touch
ONE, MANY = 1.5, 2.0  # latents: an effective number below ONE is one of them, above MANY is many
# learning fails where the MSE without overlap is above this many times that with full overlap
DISJOINT = 2.0
# ends the name of a problem whose targets keep to a quarter; then `_` and the share of the context
# there, in percent
REGIONS = "_overlap"
BUDGET = "each model was trained for this profile's steps, the document's for 2,000 epochs"


def i2(measured: Evaluated) -> dict[Any, Any]:
    """Shared against traditional encodings."""
    text = (
        "One encoder of positions for context and targets lowers the error of MSA and TFS on "
        "Poisson, and raises that of CNP on Poisson, Navier-Stokes and Darcy."
    )
    parts = []
    for model in ("msa", "tfs", "cnp") if measured.dataset.startswith("poisson") else ("cnp",):
        for shared, own in measured.encodings(model):
            parts.append(
                ratio(measured, own, shared) if model == "cnp" else ratio(measured, shared, own)
            )
    return conclude(
        measured,
        "I-2",
        text,
        "thesis, table 3.4",
        parts,
        "table 3.4 prints shared over not shared; its caption says the inverse",
    )


def i3(measured: Evaluated) -> dict[Any, Any]:
    """The size of a model."""
    parts = []
    for model in ("msa", "tfs", "gen", "cnp"):
        sizes = measured.sizes(model)
        if not {"5k", "20k", "100k"} <= set(sizes):
            absent = [size for size in ("5k", "20k", "100k") if size not in sizes]
            parts.append(
                unmeasured(
                    model,
                    f"{model}: no trained "
                    f"{' and no '.join(f'{model} of {size}' for size in absent)} here",
                )
            )
            continue
        middle = measured.tabled(model, "20k")
        parts += [ratio(measured, middle, measured.tabled(model, size)) for size in ("5k", "100k")]
    return conclude(
        measured,
        "I-3",
        "20,000 parameters are about the best size; 100,000 overfit.",
        "thesis, section 3.4",
        parts,
    )


def i4(measured: Evaluated) -> dict[Any, Any]:
    """MSA against GEN and TFS on Poisson."""
    sizes = list(measured.sizes("msa")) or ["20k"]
    parts = [
        ratio(measured, measured.tabled("msa", size), measured.tabled(model, size), WIDE)
        for size in sizes
        for model in ("gen", "tfs")
    ]
    note = (
        f"'wide' is read as {WIDE:.2f} x the MSE: half, in the logarithm, of the smaller printed "
        "factor (.010 to .007)"
    )
    return conclude(
        measured,
        "I-4",
        "MSA beats GEN and TFS on the Poisson problem by a wide margin.",
        "thesis, table C.2",
        parts,
        note,
    )


def i15(measured: Evaluated) -> dict[Any, Any]:
    """GeoFNO against MSA."""
    mine = measured.sizes("msa")
    parts = [
        ratio(
            measured,
            measured.tabled("msa", size if size in mine or not mine else list(mine)[-1]),
            arm,
        )
        for size, arms in measured.sizes("geofno").items()
        for arm in arms
    ]
    parts = parts or [unmeasured("msa < geofno", "msa < geofno: no trained geofno here")]
    return conclude(
        measured,
        "I-15",
        "GeoFNO stays behind MSA on sparse, moving measurements.",
        "thesis, table C.2",
        parts,
    )


def i6(measured: Evaluated) -> dict[Any, Any]:
    """Who copies a context without any law."""
    error = ("metrics", "mse")

    def copies(arm: str) -> Part:
        part = beyond(measured, arm, SOLVED, False, error, "MSE")
        return withheld(part, falling(measured, [arm])) if part.verdict == "fails" else part

    parts = each(measured, ("msa", "tfs", "gng"), copies)
    parts += each(
        measured,
        ("cnp", "gen", "perceiver"),
        lambda arm: beyond(measured, arm, SOLVED, True, error, "MSE"),
    )
    text = (
        "Models with a bottleneck (CNP, GEN, a perceiver of fewer latents than points) cannot copy "
        "a random context; MSA, TFS and GNG can."
    )
    return conclude(measured, "I-6", text, "thesis, figure 3.4", parts, BUDGET)


def i7(measured: Evaluated) -> dict[Any, Any]:
    """How many latents one planted error moves."""

    def touched(arm: str, bar: float, above: bool) -> Part:
        path = ("probes", "latents", "effective")
        part = beyond(measured, arm, bar, above, path, "latents touched")
        return solved(part, measured, [arm], SOLVED)

    parts = each(measured, ("msa", "tfs"), lambda arm: touched(arm, ONE, False))
    wide = [arm for arm in measured.model("gen") if not nodes(arm) or nodes(arm) ** 2 > FEW]
    parts += [touched(arm, MANY, True) for arm in wide]
    if not wide:
        parts.append(unmeasured("gen", f"gen: no GEN of more than {FEW} nodes was trained here"))
    note = (
        "latents touched: the inverse of the sum of the squared shares of the gradient's norm; one "
        f"is below {ONE:g}, many above {MANY:g}; {PLANTED}"
    )
    return conclude(
        measured,
        "I-7",
        "A planted error touches one latent in MSA and TFS, and many in GEN.",
        "thesis, figure 3.5",
        parts,
        note,
    )


def nodes(arm: str) -> int:
    """The side of a GEN's lattice by its name, 0 where the name tells none:
    'gen-lattice_3-5k' -> 3."""
    found = re.search(r"-lattice_(\d+)-", arm)
    return int(found[1]) if found else 0


def i8(measured: Evaluated) -> dict[Any, Any]:
    """Updates that undo a planted error."""
    msa = next(iter(measured.model("msa")), "msa")

    def sooner(left: str, right: str) -> Part:
        part = ratio(measured, left, right, path=("probes", "correction", "steps"))
        return solved(part, measured, [left, right], SOLVED)

    parts = each(measured, ("gen",), lambda arm: sooner(msa, arm))
    grids = sorted((nodes(arm), arm) for arm in measured.model("gen") if nodes(arm))
    if len({side for side, _ in grids}) > 1:
        parts.append(sooner(grids[-1][1], grids[0][1]))
    else:
        parts.append(
            unmeasured(
                "fewer nodes, more updates",
                "fewer nodes, more updates: no GEN of two sizes of grid here",
            )
        )
    text = "GEN needs more updates than MSA to undo a planted error, the more the fewer its nodes."
    return conclude(measured, "I-8", text, "thesis, figure 3.6", parts, PLANTED)


def i11(measured: Evaluated) -> dict[Any, Any]:
    """Conditioning and depth of the decoder."""

    def pair(model: str, kind: str) -> tuple[str, str]:
        """The plain arm of a model and the one that differs from it in `kind`, at one size; both
        have an encoder of their own for targets."""
        other = next(
            (arm for arm in measured.model(model) if arm.split("-")[1] == kind), f"{model}-{kind}"
        )
        return "-".join((model, "traditional", *other.split("-")[2:])), other

    (plain, distance), (shallow, deep), (own, worse) = (
        pair("tfs", "distance"),
        pair("tfs", "decoder_4"),
        pair("gen", "decoder_4"),
    )
    parts = [
        ratio(measured, plain, distance),
        ratio(measured, deep, shallow),
        ratio(measured, own, worse),
    ]
    text = "Conditioning by distance hurts TFS; more layers in the decoder help TFS and hurt GEN."
    return conclude(measured, "I-11", text, "thesis, tables C.5 and C.6", parts)


def by_overlap(measured: Evaluated, arm: str) -> list[Part]:
    """What I-13 says of one arm: it fails without overlap, and recovers with some."""
    shares = sorted(measured.cells[measured.arm(arm)[0]]["probes"]["overlap"], key=int)
    none, some, whole = (
        level(measured, Side(arm, ("probes", "overlap", share)))
        for share in (shares[0], shares[len(shares) // 2], shares[-1])
    )
    if len(shares) < 2 or none is None or some is None or whole is None or int(shares[0]):
        why = f"{arm}: only overlaps of {', '.join(shares)} % were measured"
        return [unmeasured(arm, why)]
    words = f"MSE at 0 % over that at {int(shares[-1])} %"
    apart = none.value - whole.value
    parts = [judged(f"{arm} fails at 0 %", words, apart, DISJOINT, True, [none, whole])]
    if len(shares) > 2:
        words = f"MSE at 0 % over that at {int(shares[len(shares) // 2])} %"
        apart = none.value - some.value
        parts.append(judged(f"{arm} recovers", words, apart, 1.0, True, [none, some]))
    return [decided(part, measured, [arm], MARKS) for part in parts]


def i13(measured: Evaluated) -> dict[Any, Any]:
    """Contexts and targets in regions of their own."""
    arms = [
        arm
        for arm in measured.model("msa")
        if any("overlap" in measured.cells[cell].get("probes", {}) for cell in measured.arm(arm))
    ]
    parts = [part for arm in arms for part in by_overlap(measured, arm)]
    parts = parts or [unmeasured("msa by overlap", "no msa was measured at several overlaps here")]
    text = (
        "Learning fails when contexts and targets lie in disjoint regions, and recovers with their "
        "overlap."
    )
    how = (
        "as in the thesis a model was trained at each overlap"
        if measured.dataset.endswith(REGIONS)
        else (
            "the thesis trains a model at each overlap, here one that saw contexts from everywhere "
            "is asked"
        )
    )
    note = f"'fails' is read as more than {DISJOINT:g} x the MSE of full overlap; {how}"
    return conclude(measured, "I-13", text, "thesis, table C.8", parts, note)


def overlapping(dataset: str) -> tuple[str, int]:
    """('darcy', 25) of 'darcy_overlap_25'; ('', 0) of a data set whose targets lie anywhere."""
    problem, _, share = dataset.partition(f"{REGIONS}_")
    return (problem, int(share)) if share.isdigit() else ("", 0)


def regional(found: list[Evaluated]) -> list[Evaluated]:
    """The data sets 'PROBLEM_overlap_SHARE' of one problem as one, 'PROBLEM_overlap', whose
    cells hold the MSE by share as if it were a probe."""
    joined: dict[str, dict[str, dict[Any, Any]]] = {}
    for measured in found:
        problem, share = overlapping(measured.dataset)
        for cell, content in measured.cells.items() if problem else ():
            cells = joined.setdefault(problem + REGIONS, {})
            cells.setdefault(cell, {"probes": {"overlap": {}}})["probes"]["overlap"][str(share)] = (
                content["metrics"]["mse"]
            )
    return [Evaluated(name, cells, found[0].spreads) for name, cells in joined.items()]


def with_probe(name: str) -> Callable[[Evaluated], bool]:
    """Whether a probe was made on any cell of a data set; of those that part regions none is
    asked here."""
    return lambda measured: (
        not overlapping(measured.dataset)[0]
        and any(name in cell.get("probes", {}) for cell in measured.cells.values())
    )


def on(*problems: str) -> Callable[[Evaluated], bool]:
    """Whether a data set is one of these problems, simulated or real."""
    return lambda measured: measured.dataset.startswith(problems)


CLAIMS: dict[
    str, tuple[tuple[str, Callable[[Evaluated], dict[Any, Any]], Callable[[Evaluated], bool]], ...]
] = {
    "sparse_fields": (
        ("I-2", i2, on("poisson", "navier_stokes", "darcy")),
        ("I-3", i3, on("")),
        ("I-4", i4, on("poisson")),
        ("I-11", i11, on("poisson")),
        ("I-15", i15, on("poisson", "navier_stokes")),
    ),
    "sensitivity": (),  # its trainings are too short for any claim
    "failure_modes": (
        ("I-6", i6, on("copies")),
        ("I-7", i7, with_probe("latents")),
        ("I-8", i8, with_probe("correction")),
        (
            "I-13",
            i13,
            lambda measured: (
                measured.dataset.startswith("sines") or measured.dataset.endswith(REGIONS)
            ),
        ),
    ),
}


def nowhere(claim: Callable[[Evaluated], dict[Any, Any]]) -> dict[Any, Any]:
    """The entry of a claim about which no data set of the profile tells anything."""
    return claim(Evaluated("–", {})) | {
        "verdict": "undecided",
        "why": "this profile has no data set or no probe that tells anything about it",
    }


def check(home: Path, experiment: str) -> list[dict[Any, Any]]:
    """Every claim of an experiment on every data set under `home` (its folder of one profile) that
    it speaks of, in that order; once, undecided, where it speaks of none."""
    spreads = Spreads.read(home)
    found = [
        Evaluated(file.parent.name, read_json(file)["cells"], spreads)
        for file in sorted((home / "evaluated").glob("[!.]*/metrics.json"))
    ]
    found += regional(found)

    def entries() -> Iterator[dict[Any, Any]]:
        for _, claim, speaks in CLAIMS[experiment]:
            mine = [measured for measured in found if speaks(measured)]
            yield from (claim(measured) for measured in mine) if mine else [nowhere(claim)]

    return list(entries())

"""The experiment's tables: what table.md and the page show alike."""

import re
from typing import Any

from stages.fields.grids.layout import (
    CLIMATOLOGY,
    EXACT,
    EXACT_OFF,
    EXACT_ON,
    INVERSE_DISTANCE,
    KRIGING,
    PERSISTENCE,
    PRIOR,
)
from stages.fields.printed import notes, theirs
from stages.tables.published import Printed
from stages.tables.table import NONE, Table, arm_of, cells_of, label, number

MAIN = "log_likelihood"
# And their order.
UNTRAINED = {PRIOR: 1, EXACT_ON: 2, EXACT_OFF: 3, EXACT: 4, CLIMATOLOGY: 2, PERSISTENCE: 3,
             INVERSE_DISTANCE: 4, KRIGING: 5}  # fmt: skip
CALLED = {
    EXACT: "the exact law of both sources (bound)",
    EXACT_OFF: "the exact law of the points alone",
    EXACT_ON: "the exact law of the cells alone",
    PRIOR: "the prior, no context",
    CLIMATOLOGY: "climatology of the hour and the place",
    PERSISTENCE: "the grid, linear between its cells",
    INVERSE_DISTANCE: "grid + increments by inverse distance",
    KRIGING: "grid + increments by kriging",
    "grid_tnp-plain": "TNP of all tokens",
    "grid_tnp-plain_off": "TNP, points alone",
    "grid_tnp-plain_on": "TNP, cells alone",
    "grid_tnp-setconv": "SetConv grid encoder",
    "grid_tnp-setconv_sum": "SetConv, the plain sum",
    "grid_tnp-setconv_late": "SetConv, embedded after gridding",
    "grid_tnp-setconv_published": "SetConv, published index",
    "grid_tnp-mhca": "MHCA grid encoder",
    "grid_tnp-mhca_off": "MHCA, points alone",
    "grid_tnp-mhca_on": "MHCA, cells alone",
    "grid_tnp-mhca_all": "MHCA, targets read all cells",
    "grid_tnp-mhca_published": "MHCA, published index",
    "grid_tnp-mhca_off_published": "MHCA, points alone, published index",
    "grid_tnp-mhca_on_published": "MHCA, cells alone, published index",
    "grid_tnp-mhca_swin": "MHCA, windows on the full grid",
    "grid_tnp-mhca_relative": "MHCA, about equivariant",
    "grid_tnp-mhca_exact": "MHCA, equivariant",
    "grid_tnp-lbanp": "LBANP, few latent tokens",
    "grid_tnp-mhca_before": "MHCA, patches before the points",
    "grid_tnp-mhca_after": "MHCA, patches after",
    "grid_tnp-mhca_coarse": "MHCA, patches by the encoder",
    "grid_tnp-setconv_before": "SetConv, patches before the points",
    "grid_tnp-setconv_after": "SetConv, patches after",
    "grid_tnp-setconv_coarse": "SetConv, patches by the encoder",
    "linear_interpolation-plain": "trainable linear interpolation",
}
NARROW = {"line_24": "width 24", "line_16": "width 16"}  # sizes beside another of the same set
BELOW, SPREADS = "below the exact law of both [nats]", "spread over land / at sea"
TITLES = (
    "model",
    "log-likelihood [nats a target]",
    BELOW,
    "RMSE",
    "CRPS",
    "within 50 % interval",
    "within 90 % interval",
    "mean square of z",
    SPREADS,
    "printed, validation [nats]",
    "weights",
)
# Of real hours, which have no exact law and no coasts, two columns hold the error by points.
OF_HOURS = {BELOW: "RMSE, few points", SPREADS: "RMSE, many points"}
Content = dict[str, Any]


def called(arm: str) -> str:
    """A row's name: 'grid_tnp-mhca-line' -> 'MHCA grid encoder'."""
    plain, _, size = arm.rpartition("-")
    name = CALLED.get(arm) or CALLED.get(plain, label(arm))
    return f"{name}, {NARROW[size]}" if size in NARROW else name


def ranked(content: Content, dataset: str) -> list[str]:
    """The arms of a set, what is trained from the highest likelihood down, then the prior, then
    the bounds."""

    def place(arm: str) -> tuple[int, float]:
        level = content["arms"][f"{dataset}/{arm}"]["metrics"][MAIN]["mean"]
        return UNTRAINED.get(arm, 0), -level

    return sorted(cells_of(content["arms"], dataset), key=place)


def share(summary: dict[str, Any] | None) -> str:
    """'91.2 %'."""
    return NONE if summary is None else f"{100 * summary['mean']:.1f} %"


def results(content: Content, dataset: str, printed: dict[str, Printed]) -> tuple[Table, str]:
    """A row an arm, with the 90 % intervals over tasks, and the notes on printed numbers."""
    arms, rows, used = ranked(content, dataset), [], []
    real = not content["about"][dataset]["bound"]
    second, last = ("rmse_few", "rmse_many") if real else ("gap", "land_over_sea")
    for arm in arms:
        told = content["arms"][f"{dataset}/{arm}"]["metrics"]
        weights = [
            cell["weights"]
            for name, cell in content["cells"].items()
            if name.startswith(f"{dataset}/{arm}-s") and "weights" in cell
        ]
        other = printed.get(f"{dataset}/{arm.rpartition('-')[0]}")
        used += [other] if other else []
        rows.append(
            (
                called(arm),
                number(told[MAIN], True),
                number(told.get(second), True),
                number(told["rmse"], True),
                number(told["crps"], True),
                share(told["coverage_50"]),
                share(told["coverage_90"]),
                number(told["z_square"]),
                number(told.get(last), real),
                theirs(other),
                f"{weights[0]:,}" if weights else NONE,
            )
        )
    best = next((place for place, arm in enumerate(arms) if arm not in UNTRAINED), None)
    named = OF_HOURS if real else {}
    titles = (named.get(title, title) for title in TITLES)
    unit = content["about"][dataset]["unit"][1]
    told_titles = tuple(re.sub("^(RMSE|CRPS)", rf"\1 [{unit}]", title) for title in titles)
    return Table(dataset, told_titles, tuple(rows), best=best), notes(used)


def sentence(about: dict[str, Any]) -> str:
    """What the set is, and its bounds."""
    made, bound = about["made"], about["bound"]
    if made["process"] == "world":
        return sentence_of_world(about)
    if not bound:
        young, old = made["age_h"]
        hours = about["hours"]
        return (
            f"Real hours of temperature 2 m above the ground, {about['shape'][0]} x "
            f"{about['shape'][1]} nodes: {hours['train']} train, {hours['val']} select, "
            f"{hours['test']} test. The grid is the mean of {made['block']} x {made['block']} "
            f"nodes {young} to {old} hours ago; 1 to {made['context']} points and "
            f"{made['targets']} targets are of the present: {about['tasks']} test tasks. Few "
            f"points are up to {made['context'] // 2}. No exact law is known; intervals are over "
            f"unbroken stretches of hours. Likelihoods are of values over {about['unit'][0]:.3g} K."
        )
    drawn = (
        f"Two functions of one Gaussian process, correlation {made['correlation']:g}, log10 of the "
        f"length from {made['low']:g} to {made['high']:g}, noise {made['noise']:g}, "
        f"{made['axes']}-D, a grid of {made['cells']} cells along each axis"
        if made["process"] == "dual"
        else f"Simulated temperatures of a globe: skin on {made['cells']} x {2 * made['cells']} "
        f"cells, air at stations, noise {made['noise']:g} K"
    )
    reached = ", ".join(
        f"{name} {bound[reads]['value']:.3f} ± {bound[reads]['standard_error']:.3f}"
        for reads, name in (("both", "of both sources"), ("off", "of the points alone"),
                            ("on", "of the cells alone"))
    )  # fmt: skip
    return (
        f"{drawn}: {about['tasks']} test tasks of 1 to {made['context']} points and "
        f"{made['targets']} targets. The exact law reaches, in nats a target: {reached}."
    )


def sentence_of_world(about: dict[str, Any]) -> str:
    """What the set of the whole globe is, and what was found of its map."""
    made, shape, unit = about["made"], about["shape"], about["unit"]
    told = (
        f"One real field of temperature 2 m above the ground, the whole globe, {shape[0]} x "
        f"{shape[1]} nodes. The grid is the mean of {made['block']} x {made['block']} nodes, of "
        f"the same time; 1 to {made['context']} points and {made['targets']} targets lie in "
        f"windows of {made['window_deg']:g}° x {made['window_deg']:g}°: {about['tasks']} test "
        f"tasks. Strips of longitudes train, select and test. Few points are up to "
        f"{made['context'] // 2}. No exact law is known; intervals are over blocks of latitude of "
        f"the strips that test. Likelihoods are of values over {unit[0]:.3g} K."
    )
    if "map" not in about:
        return told
    full = about["map"]
    errors = ", ".join(
        f"{called(arm_of(name))} {entry['rmse']['value']:.3f} [{entry['rmse']['low']:.3f}, "
        f"{entry['rmse']['high']:.3f}]"
        for name, entry in full["measured"].items()
    )
    return (
        f"{told} The map at all {full['nodes']:,} nodes reads {full['points']} points; RMSE "
        f"[{unit[1]}] over the area of the strips that test: {errors}."
    )


NOTES = (
    "Intervals are the central 90 % over test tasks, of one training. Log-likelihoods are natural "
    "logarithms of the density of one target given what is read, targets each for itself. "
    "Cells of one size train for the same steps on a set, seconds or minutes; the document's train "
    "for hours. "
    "A z-score is the error over the predicted spread: its mean square is 1 where spreads are "
    "right."
)

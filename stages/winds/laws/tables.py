"""How well the laws of neural processes on winds are known, and how their winds of whole levels
flow: what table.md and the page show beside the errors (stages/winds/tables.py). `metrics` are an
arm's over seeds as gather.py writes them."""

from typing import Any

from stages.tables import table
from stages.tables.table import Table, arm_of, label
from stages.winds import tables
from stages.winds.laws.layout import COVERAGE, DIVERGENCE, EXACT, RATIO, SHEAR, SLOPE, TRUE

NATS = "log_likelihood"
SHARES = (
    (COVERAGE, "within 50 % interval"),
    ("coverage_90", "within 90 % interval"),
    ("coverage_90_recalibrated", "within 90 %, recalibrated"),
)
NOTES = (
    "Log-likelihoods are natural logarithms of the density of one component of one wind, in units "
    "of the training winds' standard deviation. A law is the normal one of the mean and standard "
    "deviation that a model tells. A model that tells none has no score; its recalibrated interval "
    "is as wide as its errors on validation minutes. Fewer than 20 validation minutes recalibrate "
    "nothing."
)

FLOW = (  # name, times, title
    (DIVERGENCE, 1e5, "divergence [1e-5/s]"),
    (SHEAR, 1e5, "shear [1e-5/s]"),
    (RATIO, 1, "divergence over shear"),
    (SLOPE, 1, "spectral slope"),
)
BY_CONSTRUCTION = "divergence over shear, exactly"
FLOWS = (
    "Means over the levels of a few test minutes, evenly over the test: the whole area, 15 x 18 "
    "places, at the usual altitude of a minute's targets. Slopes of the wind are differences over "
    "two places, which give the truth, too, a little divergence. Of a model whose wind is one "
    "function of the place they are also taken by differentiation. The spectrum is that of the "
    "rows' kinetic energy, its slope that of logarithms, over long waves."
)


def weights(cells: dict[str, Any], name: str) -> int:
    """The weights of an arm, DATASET/ARM; 0 of what has none."""
    return next(int(cell["weights"]) for key, cell in cells.items() if arm_of(key) == name)


def laws(content: dict[str, Any], dataset: str) -> Table:
    """A row an arm: its score as a law, the least likely first, then how often intervals hold the
    wind."""
    arms = content["arms"]
    names = [name for name in tables.ordered(arms, dataset) if not tables.diverged(arms, name)]
    known = [name for name in names if NATS in arms[name]["metrics"]]
    known.sort(key=lambda name: arms[name]["metrics"][NATS]["mean"])
    rows = []
    for name in [*(one for one in names if one not in known), *known]:
        told, count = arms[name]["metrics"], weights(content["cells"], name)
        rows.append(
            (
                label(name.partition("/")[2]),
                table.number(told.get(NATS), interval=True),
                tables.number(told.get("crps_kn"), interval=True),
                *(share(told.get(key)) for key, _ in SHARES),
                f"{count:,}" if count else table.NONE,
            )
        )
    titles = (
        "model", "log-likelihood [nats a component]", "CRPS [kn]",
        *(title for _, title in SHARES), "weights",
    )  # fmt: skip
    best = len(rows) - 1 if known else None
    return Table(f"laws on {dataset}", titles, tuple(rows), best=best)


def flows(content: dict[str, Any], dataset: str) -> Table:
    """A row an arm that has a field of winds: how its levels flow; the truth's last, where the sky
    is simulated."""
    arms = content["arms"]
    names = [name for name in tables.ordered(arms, dataset) if RATIO in arms[name]["metrics"]]
    rows = []
    for name in names:
        told = arms[name]["metrics"]
        exact = table.number(told.get(EXACT), form=table.rough)
        rows.append((label(name.partition("/")[2]), *flowing(told), exact))
    for name in names[:1]:
        told = arms[name]["metrics"]
        if RATIO + TRUE in told:
            rows.append(("the simulated sky", *flowing(told, TRUE), table.NONE))
    titles = ("model", *(title for *_, title in FLOW), BY_CONSTRUCTION)
    return Table(f"flow on {dataset}", titles, tuple(rows))


def flowing(told: dict[str, Any], after: str = "") -> list[str]:
    """The numbers of FLOW, of a model or (`after`) of the truth."""
    return [table.number(told.get(name + after), scale=times) for name, times, _ in FLOW]


def share(summary: dict[str, Any] | None) -> str:
    """A share in percent with its interval: '51.3 % [48.1, 54.9]'."""
    if summary is None:
        return table.NONE
    text = f"{100 * summary['mean']:.1f} %"
    if "low" in summary:
        text += f" [{100 * summary['low']:.1f}, {100 * summary['high']:.1f}]"
    return text

"""The family's tables: what table.md and the page show alike."""

from typing import Any

from stages.dynamics.measure import SELECTS, SOLVER
from stages.dynamics.printed import Printed, beside
from stages.dynamics.rivals.build import NAMES
from stages.tables.table import NONE, Table, cells_of, digits, label, number

MAIN = "vpt"
CALLED = {
    "persistence": "persistence",
    "mean": "attractor's mean",
    "linear": "linear autoregression",
    "quadratic": "next-generation reservoir (local quadratic)",
    "reservoir": "one reservoir",
    "reservoirs": "parallel reservoirs, one readout",
    SOLVER: "the solver at half the step",
}
CAPPED = 0.05  # of the starts: so many forecasts that are still valid at the horizon are told
TITLES = (
    "forecast",
    "valid time, Lyapunov times t*·Λ1",
    "on the part that selects",
    "t*/Λ1, the document's unit",
    "printed, t*/Λ1",
    "printed, Lyapunov times",
    "error after one step [sd]",
    "never valid",
    "diverged",
    "spectrum off by [dB]",
    "weights",
)
Content = dict[str, Any]


def called(arm: str) -> str:
    """A row's name."""
    return CALLED.get(arm, label(arm))


def ranked(content: Content, dataset: str) -> list[str]:
    """The arms of a set: what was trained by gradient from the longest valid time on, then the
    rivals likewise, then the solver."""
    arms = {
        name: content["arms"][f"{dataset}/{name}"] for name in cells_of(content["arms"], dataset)
    }

    def place(arm: str) -> tuple[int, float]:
        group = 2 if arm == SOLVER else 1 if arm in NAMES else 0
        return group, -arms[arm]["metrics"][MAIN]["mean"]

    return sorted(arms, key=place)


def chosen_by(content: Content, dataset: str, arm: str) -> float:
    """An arm's valid time on the part that selects."""
    found: float = content["arms"][f"{dataset}/{arm}"]["metrics"][SELECTS]["mean"]
    return found


def valid(told: dict[str, Any]) -> str:
    """A valid time with its interval; a lower bound where forecasts outlast the horizon."""
    value = number(told[MAIN], True)
    return f"at least {value}" if told["capped"]["mean"] > CAPPED else value


def share(summary: dict[str, Any] | None) -> str:
    """'12 %'."""
    return NONE if summary is None else f"{round(100 * summary['mean'])} %"


def results(content: Content, dataset: str, printed: dict[str, Printed]) -> Table:
    """A row an arm, valid times with their 90 % interval over runs of the system."""
    arms, rows = ranked(content, dataset), []
    for arm in arms:
        told = content["arms"][f"{dataset}/{arm}"]["metrics"]
        weights = [
            cell["weights"]
            for name, cell in content["cells"].items()
            if name.startswith(f"{dataset}/{arm}-s") and "weights" in cell
        ]
        other = beside(printed, dataset, arm)
        rows.append(
            (
                called(arm),
                valid(told),
                number(told.get(SELECTS)),
                number(told["vpt_document"]),
                digits(other.document) if other else NONE,
                digits(other.lyapunov) if other else NONE,
                number(told.get("nrmse_1")),
                share(told["zero"]),
                share(told["diverged"]),
                number(told.get("psd_db")),
                f"{weights[0]:,}" if weights else NONE,
            )
        )
    networks = [arm for arm in arms if arm not in CALLED]
    chosen = max(networks, key=lambda arm: chosen_by(content, dataset, arm), default=None)
    best = arms.index(chosen) if chosen else None
    return Table(dataset, TITLES, tuple(rows), best=best)


def partly(about: dict[str, Any]) -> bool:
    """Whether a system is observed in part: of Lorenz-96 the slow tier alone."""
    return bool(about["system"]["system"] == "lorenz96")


def sentence(about: dict[str, Any]) -> str:
    """What the set is, and its exponents."""
    found, printed = about["exponent"], about["printed_exponent"]
    unit = about["unit"]
    system = about["system"]
    name = (
        f"Three-tier Lorenz-96, F = {system['forcing']:g}"
        if partly(about)
        else f"Kuramoto–Sivashinsky, L = {system['length']:g}, {system['points']} points"
    )
    told = (
        f"the document's {printed:g} is the unit of valid times"
        if printed
        else "it is the unit of valid times, for the document prints none of this domain"
    )
    ahead = about["horizon"] * about["step"]
    return (
        f"{name}: {about['starts']} starts from {system['members']} runs, an observation every "
        f"{about['step']:g}, {ahead:g} time units ahead ({ahead * unit:.1f} Lyapunov times), valid "
        f"below NRMSE {about['threshold']:g}. Largest Lyapunov exponent of the whole system by "
        f"tangent dynamics: {found['value']:.3g} [{found['low']:.3g}, {found['high']:.3g}]; {told}."
    )


NOTES = (
    "Intervals are of 90 %, Student's over runs of the system, of one training. Networks are given "
    "no more observations than a window that trained them has, rivals more. Printed numbers are "
    "those of document R's larger sweeps, at L = 60 for Kuramoto–Sivashinsky; its unit is read as "
    "t*/Λ1 (equation 38), which the report's errata argue. Networks say the change of a step here, "
    "not the next state, and are trained for seconds: compare them with each other and with the "
    "rivals. "
    "The best network is the one that is valid for longest on the part that selects."
)

"""The tables of series: what table.md and the page show alike."""

from typing import Any

from stages.dynamics.printed import Printed, beside
from stages.dynamics.series.rivals import NAMES
from stages.dynamics.tables import chosen_by, share, valid
from stages.tables.table import NONE, Table, cells_of, digits, label, number

MAIN = "vpt"
CALLED = {
    "persistence": "persistence",
    "mean": "mean of what trains",
    "yesterday": "yesterday's values",
    "linear": "linear autoregression",
    "reservoir": "one reservoir",
}
TITLES = (
    "forecast",
    "valid time [days]",
    "printed [days]",
    "error after one row [sd]",
    "never valid",
    "diverged",
    "spectrum off by [dB]",
    "weights",
)
CONVENTIONS = {
    "document": "the document's, in shares of the rows, each part for itself",
    "months": "those of Informer's code, in months, a context reaching back over its part's border",
}
Content = dict[str, Any]


def called(arm: str) -> str:
    """A row's name."""
    return CALLED.get(arm, label(arm))


def ranked(content: Content, dataset: str) -> list[str]:
    """The arms of a set: what was trained by gradient from the longest valid time on, then the
    rivals likewise."""
    arms = {
        name: content["arms"][f"{dataset}/{name}"] for name in cells_of(content["arms"], dataset)
    }
    return sorted(arms, key=lambda arm: (arm in NAMES, -arms[arm]["metrics"][MAIN]["mean"]))


def results(content: Content, dataset: str, printed: dict[str, Printed]) -> Table:
    """A row an arm, valid times with their 90 % interval over blocks of the test part."""
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
                digits(other.document) if other else NONE,
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


def sentence(about: dict[str, Any]) -> str:
    """What the set is, and what was mended of it."""
    mended = ", ".join(f"{count} {kind}" for kind, count in sorted(about["mended"].items()))
    sizes = {part: end - first for part, (first, end) in about["parts"].items()}
    rows = f"{sizes['train']:,} rows train, {sizes['val']:,} select, {sizes['test']:,} test"
    return (
        f"{about['rows']:,} rows of {len(about['columns'])} columns, one every "
        f"{24 * about['step']:.3g} h. Borders: {CONVENTIONS[about['convention']]} ({rows}). "
        f"Mended: {mended or 'nothing'}; masked cells: {about['masked']:,}. {about['starts']} "
        f"starts, {about['horizon']} rows ahead ({about['horizon'] * about['step']:.3g} days), "
        f"valid below NRMSE {about['threshold']:g}."
    )


NOTES = (
    "Valid times in days, from free runs over the test part; intervals are of 90 %, Student's over "
    "blocks of consecutive starts, of one training. Networks are given no more rows than a window "
    "that trained them has, rivals more. Each column is standardised by the rows that "
    "train. Printed numbers are those of document R's larger sweeps (tables 6 and 7), of sets and "
    "borders of its own; the rivals are ours."
)

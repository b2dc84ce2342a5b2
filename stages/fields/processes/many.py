"""The memory of an answer to as many points as document N has, beside its printed numbers (tables
5.4.1, 6.4.1 and 7.5.2).

What each kind of model holds was counted once, in the size of the document's million weights, and
stands in git: `python -m tests.benchmarks.bench_processes memory` counts it again. The document
measured on a GPU, where a program and its kernels count, too: compare how numbers grow.
"""

from collections import defaultdict
from pathlib import Path

import polars as pl

from stages.fields.processes.tables import CALLED
from stages.tables.published import read
from stages.tables.table import NONE, Table, digits

COUNTED = "memory.csv"  # model, axes, contexts, targets, mb
THEIRS = {
    "tetnp-post": "tetnp",
    "convcnp-plain": "convcnp",
    "tnp-linear": "linear_tnp",
    "tnp-hyper": "hypermix_np",
    "pseudo_tnp-te_perceiver": "pt_tetnp",
}
TABLES = ("tetnp 5.4.1", "tetnp 6.4.1", "tetnp 7.5.2")
CAPTION = (
    "counted in the size of a million weights, one layer of it, for a layer holds nothing of the "
    "one before; ConvCNP in a smaller size of ours. In brackets the printed number; two, where two "
    "tables of the document differ. They are of a GPU, its program and kernels included."
)


def counted(experiment: str) -> Path:
    """The file of an experiment's counts; it may have none."""
    return Path("reports", experiment, COUNTED)


def tables(experiment: str) -> dict[int, Table]:
    """The table of each number of dimensions; {} where nothing was counted."""
    file = counted(experiment)
    return {axes: table(experiment, axes) for axes in (1, 2)} if file.exists() else {}


def printed() -> dict[tuple[str, str, str], list[float]]:
    """(dataset "1d" or "2d", model, "Nc=...;Nt=...") -> the printed MB, in the order of tables."""
    found: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    rows = read().filter(pl.col("table").is_in(TABLES), pl.col("metric") == "memory")
    for row in rows.sort("table").iter_rows(named=True):
        mine = found[row["dataset"], row["model"], row["variant"]]
        mine += [row["mean"]] if row["mean"] not in mine else []
    return found


def table(experiment: str, axes: int) -> Table:
    """A row a model, in `axes` dimensions; columns by context points and targets."""
    rows = pl.read_csv(counted(experiment)).filter(pl.col("axes") == axes)
    asked = [*dict.fromkeys(rows.select("contexts", "targets").iter_rows())]
    theirs, lines = printed(), []
    for name, mine in rows.group_by("model", maintain_order=True):
        held = {(c, t): mb for _, _, c, t, mb in mine.iter_rows()}
        words = []
        for c, t in asked:
            other = theirs.get((f"{axes}d", THEIRS.get(str(name[0]), ""), f"Nc={c};Nt={t}"), [])
            told = " or ".join(f"{one:,.0f}" for one in other)
            words.append(digits(held[c, t]) + (f" ({told})" if told else ""))
        lines.append((CALLED.get(str(name[0]), NONE), *words))
    titles = ("model", *(f"{c:,} / {t:,} [MB]" for c, t in asked))
    return Table(f"memory in {axes}-D", titles, tuple(lines))

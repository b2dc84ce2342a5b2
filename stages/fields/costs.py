"""Figure C.4 of the thesis in numbers: time and peak memory of a step against the context's size,
as `make bench-fields` measured them once.

Read from reports/sparse_fields/PROFILE/benchmarks.json (tests/benchmarks/bench_fields.py), {} where
nothing was measured. Contenders: whole models, single layers of attention by kernel, and torch's
own nn.TransformerEncoder of MSA's shape, to which models are compared. Times in ms, memory in MiB
(2^20 bytes); an exponent is the slope of the logarithms over the larger sizes, 1 for a linear cost
and 2 for a quadratic one.
"""

from pathlib import Path
from typing import Any

from stages.files import read_json
from stages.tables.table import Table

FILE = "benchmarks.json"
NONE = "–"
CONTENDERS = {
    "hypermixer": "HyperMixer-MSA",
    "msa": "MSA",
    "torch": "torch's nn.TransformerEncoder",
    "layer ours": "one layer: our attention",
    "layer flash": "one layer: torch, flash kernel",
    "layer efficient": "one layer: torch, memory-efficient kernel",
    "layer math": "one layer: torch, plain kernel",
}
QUANTITIES = (
    ("ms", "Time of a training step [ms]", "time", "ratio"),
    ("mib", "Peak memory of a training step [MiB]", "memory", "mib_ratio"),
)


def read(home: Path) -> dict[str, Any]:
    """What was measured for a profile, {} where nothing was."""
    return read_json(home / FILE) if (home / FILE).exists() else {}


def measured_on(times: dict[str, Any], profile: str) -> str:
    """Where the times come from, or how they are made, in a sentence."""
    if not times:
        return (
            "Time and memory against the context's size were not measured for this profile (`make "
            f"bench-fields PROFILE={profile}`)."
        )
    machine = times["machine"]
    place = (
        f"GPU {machine['gpu']}"
        if times["device"].startswith("cuda")
        else f"{machine['cpu']}, {machine['cores']} cores"
    )
    threads = f"{machine['threads']} thread{'' if machine['threads'] == 1 else 's'}"
    noisy = (
        ""
        if times["quiet"]
        else (
            f" The machine was not quiet: other processes used {times['others_cores']:.1f} cores; "
            "times may be too long."
        )
    )
    quick = " A quick run, of sets too small to judge by." if times["quick"] else ""
    return (
        f"Measured once, by `make bench-fields` on {times['date']}, on {place}, {threads}: models "
        f"of {times['size']} with 256 targets, layers of MSA's shape; what would need more than "
        f"{times['most_gib']:g} GiB, or longer than was left of {times['minutes']:g} minutes, was "
        "left out. The DAG does not make these numbers, and they differ from machine to "
        f"machine.{noisy}{quick}"
    )


def significant(value: float) -> str:
    """Three digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def share(value: float) -> str:
    """A ratio: two digits behind the point, and two that are not zero of a small one."""
    return f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"


def rows_of(times: dict[str, Any]) -> dict[str, dict[int, dict[str, Any]]]:
    """Contender -> points -> what was measured there; contenders in the order of CONTENDERS."""
    found: dict[str, dict[int, dict[str, Any]]] = {}
    for row in times.get("contexts", []):
        if "skipped" not in row:
            found.setdefault(row["contender"], {})[row["points"]] = row
    return {name: found[name] for name in CONTENDERS if name in found}


def growth(times: dict[str, Any], name: str) -> dict[str, Any] | None:
    """The fitted exponents of a contender, None where it ran at too few sizes."""
    return next((fit for fit in times.get("growth", []) if fit["contender"] == name), None)


def compared(row: dict[str, Any], ratio: str, name: str) -> str:
    """'0.52 at 8,192 points': a contender's share of its yardstick; the yardstick's own is none."""
    return (
        NONE
        if ratio not in row or name == "torch"
        else f"{share(row[ratio])} at {row['points']:,} points"
    )


def contexts(times: dict[str, Any]) -> list[tuple[str, Table]]:
    """Two tables, time and memory: a row a contender, a column a size, then exponent and ratio
    at the largest size both ran at."""
    found = rows_of(times)
    points = sorted({count for mine in found.values() for count in mine})
    tables = []
    for key, title, exponent, ratio in QUANTITIES:
        rows = []
        for name, mine in found.items():
            fit = growth(times, name)
            ends = f" ({fit['low']:.2f} to {fit['high']:.2f})" if fit and key == "ms" else ""
            most = max(
                (row for row in mine.values() if ratio in row),
                key=lambda row: row["points"],
                default={},
            )
            rows.append(
                (
                    CONTENDERS[name],
                    *(significant(mine[count][key]) if count in mine else NONE for count in points),
                    f"{fit[exponent]:.2f}{ends}" if fit else NONE,
                    compared(most, ratio, name),
                )
            )
        above = min((fit["points"][0] for fit in times.get("growth", [])), default=0)
        titles = (
            "contender",
            *(f"{count:,} points" for count in points),
            f"exponent from {above:,} points" if above else "exponent",
            "over the yardstick*",
        )
        tables += [(title, Table(title.partition(" [")[0], titles, tuple(rows)))] if rows else []
    return tables


def models(times: dict[str, Any]) -> Table | None:
    """Every model at the two shapes of training, beside torch's encoder; None where nothing was
    measured."""
    rows = tuple(
        (
            row["setting"],
            f"{row['model']}-{row['size']}",
            row["work"],
            *(
                (f"left out: {row['skipped']}", NONE, NONE, NONE, NONE)
                if "skipped" in row
                else (
                    significant(row["ms"]),
                    significant(row["torch_ms"]),
                    f"{share(row['ratio'])} ({share(row['low'])} to {share(row['high'])})",
                    significant(row["mib"]),
                    share(row["mib_ratio"]),
                )
            ),
        )
        for row in times.get("models", [])
    )
    titles = (
        "setting",
        "model",
        "work",
        "time [ms]",
        "torch's encoder [ms]",
        "ratio (least to largest round)",
        "peak memory [MiB]",
        "over torch's encoder",
    )
    return Table("cost of the models", titles, rows, frozenset({0, 1, 2})) if rows else None


def goals(times: dict[str, Any]) -> Table | None:
    """Every goal about which something was measured, and whether it was met."""
    rows = tuple(
        (
            row["goal"],
            significant(row["value"]),
            f"at most {row['bar']:g}",
            "met" if row["met"] else "missed",
        )
        for row in times.get("goals", [])
    )
    return (
        Table(
            "goals of speed", ("goal", "measured", "wanted", "result"), rows, frozenset({0, 2, 3})
        )
        if rows
        else None
    )


YARDSTICK = (
    "* Models: torch's encoder of MSA's shape. Layers: torch's with the kernel that it takes by "
    "itself. At the largest size at which both ran."
)


def tables(times: dict[str, Any]) -> list[tuple[str, Table]]:
    """All tables with their titles, in order; none where nothing was measured."""
    met = (
        f"{sum(row['met'] for row in times.get('goals', []))} of {len(times.get('goals', []))} "
        "goals met"
    )
    rest = (
        (
            (
                "Every model at the shapes of training: wind 700 + 700 points, Poisson 8 sets of "
                "64 + 256"
            ),
            models(times),
        ),
        (met, goals(times)),
    )
    return contexts(times) + [(title, one) for title, one in rest if one]


def markdown(times: dict[str, Any], profile: str) -> list[str]:
    """The section of table.md."""
    lines = [
        "## Time and memory against the context's size (thesis, figure C.4)",
        "",
        measured_on(times, profile),
        "",
    ]
    for title, one in tables(times):
        lines += [f"{title}:", "", *one.markdown()]
    return lines + ([YARDSTICK, ""] if times else [])

"""The tables of the neighbour search (thesis 1.3, 1.4, A.1-A.3): comparisons counted by the DAG,
times of a benchmark, printed values.

Two sources that do not mix: counts and wrong answers come from metrics.json (the same bits on every
run), times from benchmarks.json, which `make bench-neighbours` measured once on the machine it
names. `arms` are those of metrics.json ('SET/METHOD-SCALE-kK'), `times` the content of
benchmarks.json or {} where nothing was timed, `printed` what published.searches found. Units stand
in the titles.
"""

import re
from dataclasses import dataclass
from typing import Any

from stages.tables.table import NONE, Table

SYNTHETIC = ("smoothed_random_walk", "random_points", "simultaneous_points")
METHODS = {  # in the order of the tables: what each is
    "linear": "linear search",
    "kdtree": "k-d tree in Python, masked",
    "forest": "SciPy's cKDTrees, a forest of time blocks*",
    "trajectory": "TNN (thesis), bound mended",
    "boxes": "boxes, torch only",
    "compiled": "boxes, compiled",
}
LEAF = 100  # points a leaf of the k-d tree in Python where nothing else is said
GPU = ("linear", "trajectory", "boxes")
LEAVES = re.compile(r"(c?kdtree)-(plain|scaled|masked)-leaf(\d+)")
SURFACE = re.compile(r"trajectory-K(\d+)-F(\d+)")


@dataclass(frozen=True)
class SearchResults:
    """Everything that is known of one profile's searches."""

    arms: dict[str, Any]
    times: dict[str, Any]
    printed: dict[tuple[str, str], dict[str, tuple[float, str]]]

    def sets(self) -> list[str]:
        """The point sets, those of winds first."""
        names = {name.split("/")[0] for name in self.arms}
        return sorted(names - set(SYNTHETIC)) + [name for name in SYNTHETIC if name in names]

    def most(self, name: str) -> int:
        """The largest number of neighbours that was asked for."""
        return max(
            int(found[1])
            for arm in self.arms
            if (found := re.fullmatch(rf"{re.escape(name)}/linear-\w+-k(\d+)", arm))
        )

    def metric(self, name: str, arm: str, key: str) -> dict[str, Any] | None:
        """One metric of an arm of a set, None if it was not searched."""
        return self.arms.get(f"{name}/{arm}", {}).get("metrics", {}).get(key)

    def timed(self, name: str, method: str, device: str = "cpu") -> dict[str, Any]:
        """The benchmark's row of a method on a set at the largest k, {} if there is none."""
        rows = self.times.get("tables", [])
        return next(
            (r for r in rows if (r["set"], r["method"], r["device"]) == (name, method, device)), {}
        )

    def theirs(self, name: str, arm: str, key: str) -> str:
        """A printed value with its table; the document's own winds ('original') stand beside any
        of ours."""
        value = self.printed.get((name if name in SYNTHETIC else "original", arm), {}).get(key)
        return (
            f"{value[0]:,.0f} ({value[1]})"
            if value and key == "comparisons"
            else f"{value[0]:.2f} ({value[1]})"
            if value
            else NONE
        )


def counted(summary: dict[str, Any] | None, percent: bool = False) -> str:
    """'28,579 [27,900, 29,300]', or percent with two decimals."""
    if summary is None:
        return NONE
    text = (lambda value: f"{100 * value:.2f}") if percent else (lambda value: f"{value:,.0f}")
    return f"{text(summary['mean'])} [{text(summary['low'])}, {text(summary['high'])}]"


def significant(value: float | None) -> str:
    """Three digits, '–' for None: times differ by orders of magnitude."""
    return NONE if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def line(
    found: SearchResults, name: str, shown: str, arm: str, method: str, companion: str, device: str
) -> tuple[str, ...]:
    """A row of `main` or `leaves`: counts of `arm`, times of `method` on `device`, printed
    values of `companion`."""
    row, wrong = found.timed(name, method, device), found.metric(name, arm, "wrong_rows")
    here = device == "cpu"  # counts are made on the processor
    count, share = (
        found.metric(name, arm, key) if here else None
        for key in ("comparisons", "comparisons_share")
    )
    answers = f"{wrong['mean']:.0f} of {wrong['n']}" if wrong and here else NONE
    printed = {
        key: found.theirs(name, companion, key) for key in ("comparisons", "query_ms", "build_s")
    }
    return (
        shown,
        {"cpu": "CPU", "cuda": "GPU"}[device],
        counted(count),
        counted(share, percent=True),
        printed["comparisons"],
        f"{row['points']:,}" if "points" in row else NONE,
        significant(row.get("ms")),
        printed["query_ms"],
        significant(row.get("build_s")),
        printed["build_s"],
        answers,
    )


TITLES = (
    "method",
    "device",
    "comparisons a query",
    "of what it sees [%]",
    "printed comparisons",
    "points timed",
    "query [ms]",
    "printed query [ms]",
    "build [s]",
    "printed build [s]",
    "wrong answers",
)


def main(found: SearchResults, name: str) -> Table:
    """Tables 1.3 and 1.4: every method at the largest k, anisotropic; the GPU's rows where they
    were timed or printed."""
    k, rows = found.most(name), []
    for method, words in METHODS.items():
        companion, timed = (
            ("kdtree-masked", f"kdtree-masked-leaf{LEAF}")
            if method == "kdtree"
            else (method, method)
        )
        rows.append(line(found, name, words, f"{method}-aniso-k{k}", timed, companion, "cpu"))
    rows += [
        line(found, name, METHODS[method], "", method, f"{method}-gpu", "cuda")
        for method in GPU
        if found.timed(name, method, "cuda")
        or found.theirs(name, f"{method}-gpu", "query_ms") != NONE
    ]
    return Table(f"searches of {name}", TITLES, tuple(rows), frozenset({0, 1}))


def leaves(found: SearchResults, name: str) -> Table:
    """Tables A.1-A.3: k-d trees by points a leaf; plain (isotropic, every point), scaled (every
    point) and masked."""
    k = found.most(name)
    arms = {
        arm.partition("/")[2].rpartition("-k")[0]
        for arm in found.arms
        if arm.startswith(f"{name}/kdtree-")
    }
    arms |= {row["method"] for row in found.times.get("tables", []) if row["set"] == name}
    mine = sorted(
        ((m[1], ("plain", "scaled", "masked").index(m[2]), int(m[3])), arm)
        for arm in arms
        if (m := LEAVES.fullmatch(arm))
    )
    called = {"ckdtree": "SciPy cKDTree", "kdtree": "k-d tree"}
    rows = [
        line(
            found,
            name,
            f"{called[tree]}, {arm.split('-')[1]}, leaves of {points}",
            f"{arm}-k{k}",
            arm,
            arm,
            "cpu",
        )
        for (tree, _, points), arm in mine
    ]
    return Table(f"leaves of {name}", TITLES, tuple(rows), frozenset({0, 1}))


def shares(found: SearchResults, name: str) -> Table:
    """The share of comparisons by k and scale, and of TNN with one bound alone; 90 % intervals."""
    asked = sorted(
        {
            (m[1], int(m[2]))
            for arm in found.arms
            if (m := re.fullmatch(rf"{re.escape(name)}/linear-(\w+)-k(\d+)", arm))
        },
        key=lambda one: (one[0] != "iso", one[1]),
    )

    def share_text(arm):
        return counted(found.metric(name, arm, "comparisons_share"), percent=True)

    rows = [
        (words, *(share_text(f"{method}-{scale}-k{k}") for scale, k in asked))
        for method, words in METHODS.items()
    ]

    def alone(bound, scale, k):
        return share_text(f"trajectory-{bound}_bound-k{k}") if scale == "iso" else NONE

    rows += [
        (f"TNN, the {bound}'s bound alone", *(alone(bound, *one) for one in asked))
        for bound in ("segment", "box")
    ]
    rows = [row for row in rows if set(row[1:]) != {NONE}]
    scales = {"iso": "1, 1, 1, 1", "aniso": "1, 1, 4, 9"}
    return Table(
        f"shares of {name}",
        ("method", *(f"({scales[scale]}), k = {k} [%]" for scale, k in asked)),
        tuple(rows),
    )


def speed(found: SearchResults) -> Table | None:
    """Time over the yardstick's (SciPy's cKDTree, asked for more until enough are causal), same
    run; None where nothing was timed."""
    rows = found.times.get("speed", [])
    keys = list(dict.fromkeys((row["set"], row["arm"], row["k"]) for row in rows))
    methods = [
        m
        for m in ("compiled", "boxes", "forest", "trajectory", "linear")
        if any(row["method"] == m for row in rows)
    ]
    of = {(row["set"], row["arm"], row["k"], row["method"]): row for row in rows}
    lines = tuple(
        (
            key[0],
            {"iso": "1, 1, 1, 1", "aniso": "1, 1, 4, 9"}[key[1]],
            str(key[2]),
            significant(of[(*key, "yardstick")]["ms"]),
            *(significant(of[(*key, method)]["ratio"]) for method in methods),
        )
        for key in keys
    )
    titles = (
        "set",
        "scale",
        "k",
        "yardstick [ms a query]",
        *(f"{method} over it" for method in methods),
    )
    return Table("speed", titles, lines, frozenset({0, 1})) if rows else None


def goals(found: SearchResults) -> Table | None:
    """Every goal of the issue about which something was measured, and whether it was met."""
    rows = tuple(
        (
            row["goal"],
            significant(row["value"]),
            f"at {row['at']} {row['bar']:g}",
            "met" if row["passed"] else "missed",
        )
        for row in found.times.get("goals", [])
    )
    return (
        Table("goals", ("goal", "measured", "wanted", "result"), rows, frozenset({0, 2, 3}))
        if rows
        else None
    )


def large(found: SearchResults) -> Table | None:
    """Indexes at the document's size: build, memory, query; None where they were left out."""
    rows = tuple(
        (
            row["method"],
            f"{row['points']:,}",
            significant(row["build_s"]),
            f"{row['peak_mib']:,.0f}",
            significant(row["ms"]),
            f"{row['slower']:.1f} (at {row['larger']:.0f} times the points)",
        )
        for row in found.times.get("large", [])
    )
    titles = (
        "method",
        "points",
        "build [s]",
        "peak memory [MiB]",
        "query [ms]",
        "slower than on the smallest",
    )
    return Table("large", titles, rows, frozenset({0, 5})) if rows else None


def epoch(times: dict[str, Any]) -> str:
    """A sentence on the time an epoch of GKA-MLP-TNN takes; '' where it was not timed."""
    found = times.get("epoch")
    if not found:
        return ""
    return (
        f"An epoch of GKA-MLP-TNN over a day of {found['points']:,} points ({found['steps']:,} "
        f"steps of {found['targets']} targets, {found['context']} cached neighbours each; "
        f"{found['steps_timed']} steps timed): {found['seconds']:.0f} s on the machine of the "
        "benchmark."
    )


def measured_on(times: dict[str, Any]) -> str:
    """Where the times come from, in a sentence."""
    if not times:
        return "Times were not measured for this profile (`make bench-neighbours`)."
    machine = times["machine"]
    gpu = f", GPU {machine['gpu']}" if machine["gpu"] else ", no GPU"
    noisy = (
        ""
        if times["quiet"]
        else f" The machine was not quiet: other processes used {times['others_cores']:.1f} cores."
    )
    threads = f"{machine['threads']} thread{'' if machine['threads'] == 1 else 's'}"
    return (
        f"Times: `make bench-neighbours`, {times['date']}, on {machine['cpu']}, {machine['cores']} "
        f"cores, {threads}{gpu}; medians, sets of at most {times['points']:,} points. The DAG does "
        "not make them, and they differ from machine to machine; the printed ones are of the "
        f"document's own machine.{noisy}"
    )

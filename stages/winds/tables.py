"""What table.md and the page show alike: tables of arms, days, leads and sweeps, each number beside
what it must be compared with.

A cell is one trained model, an arm the same model over its seeds; `-none`, the size of a model
without sizes, is not shown. `metrics` are an arm's over seeds as tabulate.py writes them: mean, std
(several seeds), low and high (90 %). Errors: RMSE per component, kn.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean
from typing import Any

import polars as pl

from stages.params import read_yaml
from stages.tables import table
from stages.tables.published import Printed
from stages.tables.table import Table, against, arm_of, fixed, label
from stages.winds.printed import format_printed
from stages.winds.tracks import ANY_TRACK, any_track_seconds

RMSE, BASELINE, OPTIMUM = "rmse_component_kn", "hour_average", "optimum"
M_S, TRACK = "rmse_component_m_s", "along_track_s_per_100nm"
PRINTED = "printed RMSE [kn]"
COLUMNS = (
    (RMSE, "RMSE per component [kn]"),
    (M_S, "[m/s]"),
    ("rmse_batch_mean_kn", "mean of slices [kn]"),
    ("rmse_vector_kn", "vector [kn]"),
    ("angle_mae_deg", "angle MAE [°]"),
    (TRACK, "along track [s/100 NM]"),
    ("nse", "NSE"),
    ("crps_kn", "CRPS [kn]"),
    ("coverage_90", "90 % cover"),
    ("coverage_90_recalibrated", "recalibrated"),
    ("rmse_permuted_component_kn", "context shuffled [kn]"),
    ("rmse_truth_component_kn", "against truth [kn]"),
)
WEATHER = (  # thesis table 3.3: ours, as printed, title
    (RMSE, "rmse", "RMSE per component [kn]"),
    ("angle_mae_deg", "angle_mae", "angle MAE [°]"),
    ("norm_mae_kn", "norm_mae", "speed MAE [kn]"),
    ("relative_bias_east", "relative_bias_x", "relative bias, east"),
    ("relative_bias_north", "relative_bias_y", "relative bias, north"),
    ("rstd", "rstd", "ratio of standard deviations"),
    ("nse", "nse", "NSE"),
)
NOISE = "noise_floor_component_kn"
TOLD = (*(key for key, _ in COLUMNS), *(key for key, *_ in WEATHER), NOISE, "log_likelihood")
# What metrics.json keeps of a cell: what the tables and words.csv tell, in one unit.
KEPT = (
    *(f"metrics/{key}" for key in (*TOLD, "hull_share") if not key.endswith("_m_s")),
    "undefined/intervals",
)
KERNELS = (
    "persistence",
    "knn_tnn",
    "gka",
    "gka_tnn",
    "gka_mlp_tnn",
    OPTIMUM,
)  # figure 3.3's row: what averages its neighbours
UNITS = ("km", "min", "s")
DIVERGED = -10.0  # NSE: an error of over three times the winds' own spread is no forecast
LEFT = "diverged"  # what a table tells instead of such an arm's numbers


def number(summary: dict[str, Any] | None, interval: bool = False) -> str:
    """'7.42 ± 0.05 [6.9, 8.0]': two digits behind the point."""
    return table.number(summary, interval, form=fixed, spread=fixed)


def of_optimum(mean: float, best: float) -> str:
    """What percent of the best forecast there is a model reaches: 100 RMSE_optimum / RMSE."""
    return f"{100 * best / mean:.1f}"


def without_intervals(cells: dict[str, Any], dataset: str) -> str:
    """A sentence on why nothing of a data set has an interval, "" where it has."""
    mine = (one for name, one in cells.items() if name.startswith(dataset + "/"))
    why = next((one["undefined"].get("intervals") for one in mine if "undefined" in one), None)
    return f" No intervals: {why}." if why else ""


def error_of(arms: dict[str, Any], dataset: str, arm: str) -> float | None:
    """The mean RMSE (kn) of one arm, None if it was not run."""
    found = arms.get(f"{dataset}/{arm}")
    return found["metrics"][RMSE]["mean"] if found and RMSE in found["metrics"] else None


def floor_of(arms: dict[str, Any], dataset: str) -> float | None:
    """The data set's noise floor (kn per component): what a perfect forecast would still miss of
    the measurements."""
    values = [
        arm["metrics"][NOISE]["mean"]
        for name, arm in arms.items()
        if name.startswith(dataset + "/") and NOISE in arm["metrics"]
    ]
    return values[0] if values else None


def ordered(arms: dict[str, Any], dataset: str) -> list[str]:
    """The data set's arms, worst RMSE first, so that the eye ends on the best."""
    mine = [name for name in arms if name.startswith(dataset + "/")]
    return sorted(mine, key=lambda name: -arms[name]["metrics"][RMSE]["mean"])


def diverged(arms: dict[str, Any], name: str) -> bool:
    """Whether what an arm answers has left the range of winds: it has no place in a ranking."""
    skill = arms[name]["metrics"].get("nse")
    return bool(skill) and skill["mean"] < DIVERGED


def leading(names: list[str]) -> list[str]:
    """The arms for figures and findings, worst first as given: of GEN's many operators (thesis
    table C.10) the best alone."""
    others = [name for name in names if name.partition("/")[2].startswith("gen-message_")]
    return [name for name in names if name not in others[:-1]]


def compared(
    arms: dict[str, Any], dataset: str, name: str, printed: dict[str, list[Printed]]
) -> dict[str, str]:
    """The companions of one arm by the title of their column: trivial baseline, optimum where it
    is known, printed value."""
    mean, best = arms[name]["metrics"][RMSE]["mean"], error_of(arms, dataset, OPTIMUM)
    optimum = {"of the optimum [%]": of_optimum(mean, best)} if best else {}
    return {
        f"vs {BASELINE}": against(mean, error_of(arms, dataset, BASELINE)),
        **optimum,
        PRINTED: format_printed(printed.get(name.split("/")[1], [])),
    }


def results(arms: dict[str, Any], dataset: str, printed: dict[str, list[Printed]]) -> Table:
    """A row an arm, with its companions; of one that diverged its name and what was printed."""
    names = ordered(arms, dataset)
    beside = [compared(arms, dataset, name, printed) for name in names]
    if not any(TRACK in arms[name]["metrics"] for name in names):
        beside = [
            {ANY_TRACK: fixed(any_track_seconds(arms[name]["metrics"][M_S]["mean"]))} | extra
            for name, extra in zip(names, beside, strict=True)
        ]
    titles, values = ["model", "seeds"], []
    for name, extra in zip(names, beside, strict=True):
        cells = [number(arms[name]["metrics"].get(key), key == RMSE) for key, _ in COLUMNS]
        if diverged(arms, name):
            cells = [LEFT, *[table.NONE] * (len(COLUMNS) - 1)]
            extra = dict.fromkeys(extra, table.NONE) | {PRINTED: extra[PRINTED]}
        values.append(
            (
                label(name.split("/")[1]),
                str(arms[name]["seeds"]),
                *cells[:2],
                *extra.values(),
                *cells[2:],
            )
        )
    names_of_columns = [title for _, title in COLUMNS]
    titles += [*names_of_columns[:2], *beside[0], *names_of_columns[2:]]
    return Table(
        f"results on {dataset}",
        tuple(titles),
        tuple(values),
        frozenset({0, titles.index(PRINTED)}),
        len(names) - 1,
    )


def curve(
    cells: dict[str, Any], arm: str, group: str, metric: str = RMSE
) -> dict[str, tuple[float, float, float]]:
    """Mean over the arm's seeds of one metric in each bin of a breakdown: {bin: (value, low,
    high)}."""
    members = [
        content[group]
        for name, content in cells.items()
        if arm_of(name) == arm and content.get(group)
    ]
    keys = [
        key
        for key in (members[0] if members else {})
        if all(metric in m.get(key, {}) for m in members)
    ]

    def mean(key, part):
        return fmean(m[key][metric].get(part, m[key][metric]["value"]) for m in members)

    return {key: (mean(key, "value"), mean(key, "low"), mean(key, "high")) for key in keys}


def broken(
    cells: dict[str, Any], names: Iterable[str], group: str
) -> tuple[list[str], dict[str, dict[str, str]]]:
    """The bins of a breakdown and each arm's 'value [low, high]' in them."""
    curves = {name: curve(cells, name, group) for name in names}
    bins = sorted({key for found in curves.values() for key in found})

    def text(value, low, high):
        return f"{value:.2f} [{low:.2f}, {high:.2f}]" if low < high else f"{value:.2f}"

    return bins, {
        name: {key: text(*values) for key, values in found.items()}
        for name, found in curves.items()
        if found
    }


def by_day(
    arms: dict[str, Any],
    cells: dict[str, Any],
    dataset: str,
    printed: dict[str, list[Printed]],
    more: dict[str, dict[str, str]] | None = None,
) -> Table | None:
    """Thesis table 1.2: RMSE of each day (UTC), the document's days beside it; `more` = title ->
    arm -> text, further columns."""
    bins, told = broken(cells, ordered(arms, dataset), "by_day")
    if not bins:
        return None
    days = sorted(
        {p.dataset for rows in printed.values() for p in rows if p.dataset.startswith("wind_day")}
    )
    titles = [
        "model",
        *(f"{day} [kn]" for day in bins),
        *(f"printed, day {day.removeprefix('wind_day')} [kn]" for day in days),
        *(more or {}),
    ]
    rows = []
    for name, values in told.items():
        arm = name.split("/")[1]
        theirs = {p.dataset: f"{p.mean:.2f}" for p in printed.get(arm, [])}
        values = dict.fromkeys(values, LEFT) if diverged(arms, name) else values
        rows.append(
            (
                label(arm),
                *(values.get(day, "–") for day in bins),
                *(theirs.get(day, "–") for day in days),
                *(column.get(arm, "–") for column in (more or {}).values()),
            )
        )
    return Table(f"days of {dataset}", tuple(titles), tuple(rows))


def by_lead(arms: dict[str, Any], cells: dict[str, Any], dataset: str) -> Table | None:
    """Figure 3.3's row of kernel averaging: RMSE by lead of what averages its neighbours,
    persistence first; None without such a model."""

    def place(arm):
        return next((i for i, model in enumerate(KERNELS) if re.match(rf"{model}(-|$)", arm)), None)

    mine = {name: place(name.split("/")[1]) for name in ordered(arms, dataset)}
    chosen = sorted(
        (name for name, rank in mine.items() if rank is not None),
        key=lambda name: (mine[name], name),
    )
    bins, told = broken(cells, chosen, "by_lead")
    if not bins or not any(mine[name] for name in told):
        return None
    rows = tuple(
        (label(name.split("/")[1]), *(values.get(lead, "–") for lead in bins))
        for name, values in told.items()
    )
    return Table(
        f"leads of {dataset}", ("model", *(f"{float(lead):g} min [kn]" for lead in bins)), rows
    )


def weather(
    arms: dict[str, Any], dataset: str, printed: dict[str, dict[str, Printed]]
) -> Table | None:
    """Thesis table 3.3: the forecasters' own metrics of each arm; below, the printed rows. None
    where no arm was measured by them."""
    mine = [
        name
        for name in ordered(arms, dataset)
        if all(key in arms[name]["metrics"] for key, _, _ in WEATHER)
    ]
    if not mine or not printed:
        return None
    rows = [
        (
            label(name.split("/")[1]),
            *(
                LEFT if diverged(arms, name) else number(arms[name]["metrics"][key])
                for key, _, _ in WEATHER
            ),
        )
        for name in mine
    ]

    def theirs(one):
        return (
            "–"
            if one is None
            else f"{one.mean:.2f}" + (f" ± {one.std:.2f}" if one.std is not None else "")
        )

    rows += [
        (f"printed, {model}", *(theirs(found.get(key)) for _, key, _ in WEATHER))
        for model, found in printed.items()
    ]
    return Table(
        f"weather metrics on {dataset}", ("model", *(title for _, _, title in WEATHER)), tuple(rows)
    )


def quantity(name: str, value: str) -> str:
    """An argument with its unit: ('horizontal_km', '26.6') -> 'horizontal 26.6 km'; a number
    without unit keeps its name whole."""
    word, _, unit = name.rpartition("_")
    return f"{word} {value} {unit}" if unit in UNITS and word else f"{name} {value}"


def trials_of(folder: Path) -> dict[str, pl.DataFrame]:
    """Model -> the draws of its sweep in order, from `folder` = PROFILE/sweeps/DATASET; {} where
    nothing was swept. No error: null."""
    return {
        file.parent.name: pl.read_csv(file, infer_schema_length=0).with_columns(
            pl.col("draw").cast(int), pl.col(RMSE).cast(float)
        )
        for file in sorted(folder.glob("[!.]*/trials.csv"))
    }


def samplers_of(folder: Path) -> dict[str, str]:
    """Model -> how its draws were made: tpe, random or grid."""
    return {
        file.parent.name: read_yaml(file)["sampler"]
        for file in sorted(folder.glob("[!.]*/best.yaml"))
    }


def sweeps(folder: Path, dataset: str) -> Table | None:
    """What each sweep chose: draws and sampler, those pruned, the best (the first of equals),
    its RMSE on validation slices, its arguments."""
    rows, samplers = [], samplers_of(folder)
    for model, trials in trials_of(folder).items():
        best = trials.sort(RMSE, "draw", nulls_last=True).row(0, named=True)
        arguments = ", ".join(
            quantity(name, value)
            for name, value in best.items()
            if name not in ("draw", RMSE, "state")
        )
        pruned = trials.filter(pl.col("state") == "pruned").height
        rows.append(
            (
                model,
                samplers[model],
                str(len(trials)),
                str(pruned),
                str(best["draw"]),
                f"{best[RMSE]:.2f}",
                arguments,
            )
        )
    titles = (
        "model",
        "sampler",
        "draws",
        "pruned",
        "best draw",
        "RMSE on validation slices [kn]",
        "best arguments",
    )
    return (
        Table(f"sweeps on {dataset}", titles, tuple(rows), frozenset({0, 1, 6})) if rows else None
    )

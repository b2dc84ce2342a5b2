"""One experiment's forecasts, gathered: metrics.json (every cell and its arm over seeds), table.md,
claims.json, figures.

`python -m stages.winds.tabulate EXPERIMENT PROFILE`. A cell is one trained model; an arm is the
same model over its seeds. An arm's interval is the mean over seeds of the cells' 90 % bounds.
"""

import sys
from pathlib import Path
from typing import Any

from stages import spreads
from stages.tables.table import addresses, datasets_of
from stages.tables.tabulation import Content, Tabulation, gathered, home_of
from stages.winds import claims, tables
from stages.winds.printed import companions, epochs, weather

LEGEND = (
    "± is the sample standard deviation over seeds; [ ] the 90 % interval, Student's over six runs "
    "of test minutes; a test of less than six half hours is too short for one. RMSE is over points "
    "and both components "
    "unless a column says otherwise; 'printed' is the document's RMSE in knots on its own data. "
    "'Context shuffled' deals the context's values anew among all points that a minute's targets "
    "read: an error that stays the "
    "same says that the model does not use where the winds were measured. day_average is not "
    "causal: it is the mean of the whole day, test minutes included; on a capture shorter than a "
    "day or an hour the averages are over what there is."
)
OPTIMUM = (
    "The wind of this set is drawn from a known Gaussian process, so `optimum`, the exact process, "
    "is the best forecast there is in mean square; 'of the optimum' is its RMSE over the model's."
)


def table(experiment: str, profile: str, content: Content) -> str:
    """Markdown: a row an arm, the printed value, the noise floor, the baseline and the optimum
    beside ours; then days, leads and sweeps."""
    arms, cells = content["arms"], content["cells"]
    printed = companions(experiment)
    durations = {"printed epoch [s]": {arm: f"{s:,.0f}" for arm, s in epochs(experiment).items()}}
    lines = [f"# {experiment}, profile {profile}", "", LEGEND, ""]
    for dataset in datasets_of(arms):
        names, floor = tables.ordered(arms, dataset), tables.floor_of(arms, dataset)
        n = arms[names[0]]["metrics"][tables.RMSE]["n"]
        noise = f" Noise floor of the sensors: {floor:.2f} kn per component." if floor else ""
        noise += tables.without_intervals(cells, dataset)
        lines += [f"## {dataset}", "", f"{n:,} held-out points.{noise}", ""]
        lines += [OPTIMUM, ""] if tables.error_of(arms, dataset, tables.OPTIMUM) else []
        lines += tables.results(arms, dataset, printed).markdown()
        folder = Path("reports", experiment, profile, "sweeps", dataset)
        for title, found in (
            (
                (
                    "By day, beside the document's three days (thesis, table 1.2); epochs are "
                    "printed for one day of a million points"
                ),
                tables.by_day(arms, cells, dataset, printed, durations),
            ),
            ("Kernel averaging by lead (thesis, figure 3.3)", tables.by_lead(arms, cells, dataset)),
            (
                (
                    "By the weather service's metrics, the printed rows (about 100,000 parameters; "
                    "thesis, table 3.3) below"
                ),
                tables.weather(arms, dataset, weather()),
            ),
            ("What the sweeps chose on validation slices", tables.sweeps(folder, dataset)),
        ):
            lines += [f"{title}:", "", *found.markdown()] if found else []
        lines += [addresses(experiment, profile, cells, dataset, tables.RMSE), ""]
    return "\n".join(lines)


def claims_of(experiment: str, profile: str) -> list[dict[str, Any]]:
    """The entries of claims.json."""
    return claims.check(home_of(experiment, profile), experiment)


def draw(experiment: str, profile: str, content: Content) -> None:
    """All figures."""
    from stages.winds import figures  # with matplotlib, which the tables do not need

    prepared = Path("data") / profile / "prepared"
    figures.draw(home_of(experiment, profile), prepared, content["arms"], content["cells"])


def inputs(experiment: str, profile: str) -> list[Path]:
    """What is read beside the evaluations."""
    swept = home_of(experiment, profile) / "sweeps"
    read = [*([swept] if swept.exists() else []), Path("data") / profile / "prepared"]
    return [*read, *spreads.files(profile)]


TABULATION = Tabulation(gathered, table, claims_of, draw, inputs, tables.KEPT)


def main(argv: list[str] | None = None) -> int:
    """Exit code of the command."""
    return TABULATION.command("stages.winds.tabulate", argv)


if __name__ == "__main__":
    sys.exit(main())

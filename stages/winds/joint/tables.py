"""The joint nowcast's tables: what table.md and the page show alike."""

from typing import Any

from stages.tables.table import NONE, Table, cells_of, fixed, label, number
from stages.winds.joint.layout import (
    INCREMENTS,
    KALMAN,
    KRIGING,
    LINEAR,
    OPTIMUM,
    OPTIMUM_AIRCRAFT,
    OPTIMUM_GRID,
    PRIOR,
)
from stages.winds.tracks import ANY_TRACK, any_track_seconds

MAIN = "rmse"
# And their order, below what is trained.
UNTRAINED = {KALMAN: 1, INCREMENTS: 2, KRIGING: 3, LINEAR: 4, PRIOR: 5, OPTIMUM: 6,
             OPTIMUM_AIRCRAFT: 7, OPTIMUM_GRID: 8}  # fmt: skip
CALLED = {
    OPTIMUM: "the exact law of both (optimum)",
    OPTIMUM_AIRCRAFT: "the exact law of the aircraft alone",
    OPTIMUM_GRID: "the exact law of the grid alone",
    LINEAR: "the grid, linear in space, relaxing in time",
    INCREMENTS: "grid + increments by kriging",
    KALMAN: "grid + increments by a Kalman filter",
    KRIGING: "the aircraft alone by kriging",
    PRIOR: "the mean wind",
    "joint_tnp-both": "joint TNP, both",
    "joint_tnp-aircraft": "joint TNP, aircraft alone",
    "joint_tnp-grid": "joint TNP, grid alone",
}
OVER, BELOW = "over the optimum's", "below the optimum's [nats]"
TITLES = (
    "model",
    "RMSE [m/s a component]",
    ANY_TRACK,
    OVER,
    "log-likelihood [nats]",
    BELOW,
    "CRPS [m/s a component]",
    "within 50 % interval",
    "within 90 % interval",
    "weights",
)
# No optimum is known of a real sky: kriging of the increments stands there.
OF_REAL = {OVER: "over that of increments by kriging",
           BELOW: "above increments by kriging [nats]"}  # fmt: skip
# The breakdowns, the order of the page.
BY = {"by_lead": "lead time", "by_altitude": "altitude", "by_distance": "distance to a report",
      "by_age": "age of the grid"}  # fmt: skip
SCORES = ("rmse", "crps")  # by which they are told
NOTES = (
    "The aircraft, their errors and the grid's faults are simulated: the grid is the wind coarse, "
    "smoothed, biased and late. The wind is drawn from a known law, or that of a reanalysis. "
    "Errors are against the true wind, likelihoods, CRPS and intervals of what an aircraft would "
    "measure. Intervals are the central 90 % over test tasks, of one training, where each task "
    "has a sky of its own; over blocks of places where the sky is one. Any track: the root mean "
    "square error in time over tracks in all directions, flown at 450 kn. Trained cells draw new "
    "tasks at every step, for seconds. Rivals have their numbers from skies that no test has."
)
Content = dict[str, Any]


def called(arm: str) -> str:
    """A row's name: 'joint_tnp-both-w16' -> 'joint TNP, both'."""
    return CALLED.get(arm) or CALLED.get(arm.rpartition("-")[0], label(arm))


def ranked(content: Content, dataset: str) -> list[str]:
    """The arms of a set: what is trained from the least error up, the rivals, the exact laws."""

    def place(arm: str) -> tuple[int, float]:
        error = content["arms"][f"{dataset}/{arm}"]["metrics"][MAIN]["mean"]
        return UNTRAINED.get(arm, 0), error

    return sorted(cells_of(content["arms"], dataset), key=place)


def share(summary: dict[str, Any]) -> str:
    """'91.2 %'."""
    return f"{100 * summary['mean']:.1f} %"


def results(content: Content, dataset: str) -> Table:
    """A row an arm, with its 90 % intervals over tasks."""
    arms, rows = ranked(content, dataset), []
    real = is_real(content["about"][dataset])
    over, beside = ("over_increments", "gain") if real else ("over_optimum", "gap")
    for arm in arms:
        told = content["arms"][f"{dataset}/{arm}"]["metrics"]
        weights = [
            cell["weights"]
            for name, cell in content["cells"].items()
            if name.startswith(f"{dataset}/{arm}-s") and "weights" in cell
        ]
        rows.append(
            (
                called(arm),
                number(told[MAIN], True, form=fixed),
                fixed(any_track_seconds(told[MAIN]["mean"])),
                number(told[over], True, form="{:.3f}".format),
                number(told["log_likelihood"], True),
                number(told[beside], True),
                number(told["crps"], True, form="{:.3f}".format),
                share(told["coverage_50"]),
                share(told["coverage_90"]),
                f"{weights[0]:,}" if weights else NONE,
            )
        )
    best = next((place for place, arm in enumerate(arms) if arm not in UNTRAINED), None)
    titles = tuple(OF_REAL.get(title, title) if real else title for title in TITLES)
    return Table(dataset, titles, tuple(rows), best=best)


def breakdown(content: Content, dataset: str, by: str, score: str = "rmse") -> Table:
    """A row an arm, a column a bin: RMSE or CRPS in the mean over seeds, m/s a component."""
    arms = ranked(content, dataset)
    whole = content["cells"]
    bins = sorted({one for name, cell in whole.items() if name.startswith(f"{dataset}/")
                   for one in cell[by]})  # fmt: skip
    rows = []
    for arm in arms:
        mine = seeds_of(content, dataset, arm)
        values = [[cell[by][one][score]["value"] for cell in mine] for one in bins]
        rows.append((called(arm), *(fixed(sum(each) / len(each)) for each in values)))
    name = f"{dataset}-{by}" + ("" if score == "rmse" else f"-{score}")
    return Table(name, (f"{score.upper()} [m/s] by {BY[by]}", *bins), tuple(rows))


def seeds_of(content: Content, dataset: str, arm: str) -> list[dict[str, Any]]:
    """The cells of an arm, one a seed."""
    name = f"{dataset}/{arm}"
    return [cell for key, cell in sorted(content["cells"].items())
            if key == name or key.rpartition("-s")[0] == name]  # fmt: skip


def is_real(about: dict[str, Any]) -> bool:
    """Whether the sky is a reanalysis's, of which no exact law is known."""
    return not about["bound"]


def sentence(about: dict[str, Any]) -> str:
    """What the set is."""
    made = about["made"]
    grid, cells = made["weather"], made["weather"]["cells"]
    seen = (
        f"1 to {made['aircraft']} aircraft report every {made['every_min']:g} "
        f"min of the last {made['memory_min']:g}, with {made['noise_m_s']:g} m/s of noise. The "
        f"grid has {' x '.join(map(str, cells))} cells, smoothed over {grid['smooth_km']:g} km, "
        f"with a bias of {grid['bias_m_s']:g} and noise of {grid['noise_m_s']:g} m/s, "
        f"{grid['age_h'][0]:g} to {grid['age_h'][1]:g} hours old. {about['tasks']} test tasks of "
        f"{made['targets']} targets, {made['lead_min'][0]:g} to {made['lead_min'][1]:g} min ahead."
    )
    if is_real(about):
        pressures = ", ".join(f"{one}" for one in made["levels_hpa"])
        return (
            f"Real winds of a reanalysis at its nodes, on {pressures} hPa, at {about['hours']} "
            f"hours of one day; between nodes, levels and hours they are linear. Areas of "
            f"{made['extent_km'][0]:g} x {made['extent_km'][1]:g} km, {made['altitude_km'][0]:g} "
            f"to {made['altitude_km'][1]:g} km high, are cut out of strips of longitude: other "
            f"strips train than select and test, and no node serves two of them. {seen} The grid "
            f"is of another member of the ensemble. Simulated are the aircraft, their noise, and "
            f"the grid's bias, noise and age. Test tasks lie in {about['groups']} blocks of "
            f"strips, {2 * made['group_km']:g} km long or longer, over which intervals are drawn. "
            f"No exact law is known."
        )
    parts = " and ".join(
        f"{one['sd_m_s']:g} m/s over {one['horizontal_km']:g} km, {one['vertical_km']:g} km of "
        f"height and {one['time_min']:g} min"
        for one in made["parts"]
    )
    return (
        f"Simulated skies of {made['extent_km'][0]:g} x {made['extent_km'][1]:g} km, "
        f"{made['altitude_km'][0]:g} to {made['altitude_km'][1]:g} km high: a component's wind "
        f"varies by {parts}. {seen}"
    )

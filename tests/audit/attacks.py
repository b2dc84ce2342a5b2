"""Attacks on this repository's own results, by someone who knows the audit: what is done, the depth
at which it falls, the file that is named.

Each starts from a number that passes at that depth, and passes at the depths before it. Unless it
is careless it makes records, locks, DVC's cache and the commit agree (real.py). `nowhere` are those
that must have no effect: the number passes, and nothing of theirs has run.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from doctored import (
    CHAOS,
    CODE,
    COUNTS,
    DARCY,
    DECODED,
    GP,
    ROOMS,
    RUN,
    SEARCH,
    SERIES,
    WALK,
    WALKS,
    WIND,
    best,
    decoded,
    doctored,
    dropped,
    evaluated,
    history,
    leak,
    phantom,
    states_leaked,
    tensors,
    told,
    training,
    winds_leaked,
    winner,
)
from planted import bytecode, filtered, grafted, kernels, linked, replaced, shadow, site, unseen


@dataclass(frozen=True)
class Attack:
    """What is done to a copy, to which number, and where it falls (`nowhere`: it has no effect)."""

    name: str
    number: str
    depth: str
    path: str
    word: str
    forge: Callable[[Path], None]
    issue: str = ""  # the paragraph that asks for it


TABLE = "reports/sparse_fields/mini/metrics.json"
ATTACKS = (
    Attack(
        "the truth of the test doctored in prepared data",
        WIND,
        "hash",
        GP,
        "are no decoded winds",
        doctored,
        "4",
    ),
    Attack(
        "a wind doctored in decoded and prepared data",
        WIND,
        "raw",
        DECODED,
        "made again from the raw files",
        decoded,
        "4",
    ),
    Attack(
        "a model better than the known optimum",
        SEARCH,
        "hash",
        f"{evaluated(SEARCH)}/metrics.json",
        "better than is possible",
        told(SEARCH, best),
        "4",
    ),
    Attack(
        "test rooms copied over training rooms, labels kept",
        ROOMS,
        "hash",
        DARCY,
        "have the values of training ones",
        tensors(DARCY, leak(("target_x", "target_y", "context_x", "context_y"), 100)),
        "5",
    ),
    Attack(
        "the same within the rounding of their values",
        ROOMS,
        "hash",
        DARCY,
        "have the values of training ones",
        tensors(DARCY, leak(("target_x", "target_y"), 100, 4e-7)),
        "5",
    ),
    Attack(
        "winds of the test copied over training winds",
        WIND,
        "hash",
        GP,
        "have the values of training ones",
        winds_leaked,
        "5",
    ),
    Attack(
        "walks of the test copied over training walks",
        WALK,
        "hash",
        WALKS,
        "of val or test are training ones",
        tensors(WALKS, leak(("tokens",), 100)),
        "5",
    ),
    Attack(
        "states of the test laid over training states",
        CHAOS,
        "hash",
        SERIES,
        "have the values of training ones",
        states_leaked,
        "5",
    ),
    Attack(
        "a breakdown of winds edited",
        WIND,
        "hash",
        f"{evaluated(WIND)}/slices.parquet",
        "its errors of persistence altitude",
        told(
            WIND,
            lambda entry: next(iter(entry["by_altitude"].values()))["rmse_component_m_s"].update(
                value=1.0
            ),
        ),
        "3",
    ),
    Attack(
        "an angle of winds edited",
        WIND,
        "hash",
        f"{evaluated(WIND)}/predictions-persistence.parquet",
        "it gives angle_mae_deg",
        told(WIND, lambda entry: entry["metrics"]["angle_mae_deg"].update(value=1.0)),
        "3",
    ),
    Attack(
        "an MSE of rooms edited",
        ROOMS,
        "hash",
        f"{evaluated(ROOMS)}/metrics.json",
        "of its MSE",
        told(ROOMS, lambda entry: entry["metrics"]["mse"].update(value=1e-6)),
        "3",
    ),
    Attack(
        "the nats of walks edited",
        WALK,
        "hash",
        f"{evaluated(WALK)}/metrics.json",
        "is not that of nats",
        told(WALK, lambda entry: entry["metrics"]["nats"].update(value=1.2)),
        "3",
    ),
    Attack(
        "a horizon of forecasts edited",
        CHAOS,
        "hash",
        f"{evaluated(CHAOS)}/metrics.json",
        "which is not its vpt",
        told(CHAOS, lambda entry: entry["metrics"]["valid_time"].update(value=2.5)),
        "3",
    ),
    Attack(
        "a seed that nobody trained",
        ROOMS,
        "record",
        TABLE,
        "no record says that it was trained",
        phantom,
        "8",
    ),
    Attack(
        "a history of validation edited",
        ROOMS,
        "hash",
        f"{evaluated(ROOMS)}/metrics.json",
        "it tells another history",
        history,
        "8",
    ),
    Attack(
        "a history of training edited",
        ROOMS,
        "train",
        f"{RUN}/history.json",
        "the same weights, and another file",
        training,
        "8",
    ),
    Attack(
        "a sweep's winner better than its trials",
        SEARCH,
        "record",
        "reports/wind_baselines/mini/sweeps/gp_wind",
        "the least of its trials",
        winner,
        "8",
    ),
    Attack(
        "rows dropped under another reason, sums kept",
        "wind_baselines/mini/simulated/persistence/rmse_component_kn",
        "raw",
        COUNTS,
        "made again from the raw files",
        dropped,
        "8",
    ),
    Attack("other bytecode beside a module", ROOMS, "nowhere", "", "", bytecode, "11"),
    Attack("other compiled kernels beside their sources", WIND, "nowhere", "", "", kernels, "11"),
    Attack(
        "sitecustomize, usercustomize, PYTHONSTARTUP, NUMBA_CACHE_DIR",
        ROOMS,
        "nowhere",
        "",
        "",
        site,
        "11",
    ),
    Attack(
        "a module at the root in place of a library",
        ROOMS,
        "record",
        "polars.py",
        "loaded before a library's",
        shadow("polars.py", False),
        "11",
    ),
    Attack(
        "an extension module beside its source",
        ROOMS,
        "record",
        "stages/fields/scores.cpython-311-x86_64-linux-gnu.so",
        "Python loads it before",
        shadow("stages/fields/scores.cpython-311-x86_64-linux-gnu.so"),
        "11",
    ),
    Attack(
        "a package in the place of a module",
        ROOMS,
        "record",
        "stages/fields/scores/__init__.py",
        "are one module",
        shadow("stages/fields/scores/__init__.py"),
        "11",
    ),
    Attack("a source replaced in git (git replace)", ROOMS, "nowhere", "", "", replaced, "11"),
    Attack("a commit replaced in git", ROOMS, "nowhere", "", "", grafted, "11"),
    Attack(
        "an edited table hidden by a filter of attributes",
        ROOMS,
        "record",
        TABLE,
        "recorded are",
        filtered,
        "11",
    ),
    Attack(
        "an edited source that git does not look at",
        ROOMS,
        "record",
        CODE,
        "differs from the commit",
        unseen,
        "11",
    ),
    Attack(
        "prepared data under a link out of the project",
        ROOMS,
        "hash",
        DARCY,
        "leads out of the project",
        linked,
        "11",
    ),
)

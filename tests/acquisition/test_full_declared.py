"""What the profile full declares of the thesis' chapter 3: pins as their publisher lists them,
the documents' months and counts, budgets as reckoned."""

import csv
import math
import os
import re
from pathlib import Path

import numpy as np
import pytest

from stages import params
from stages.acquisition.sources import objection
from stages.fields.problems import pdebench
from stages.fields.problems.weather import read as weather

ROOT = Path(__file__).parents[2]
MIRROR = os.environ.get("TRADEWIND_MIRROR")
# training sets, and the epochs of the public code (of the document, where it has more)
EPOCHS = {
    "poisson_rooms": (2560, 2000),
    "darcy_1024": (1600, 1500),
    "navier_stokes_pdebench": (38_000, 1000),
    "weather_era5": (8736, 1000),
    "copies_64": (10_000, 2000),
}


@pytest.fixture(scope="module")
def settings():
    return params.load(ROOT / "params.yaml")


def test_every_pinned_file_may_be_asked_for_and_none_is_a_copy_of_another(settings):
    files = settings.datasets["navier_stokes_pdebench"].files
    assert all(re.fullmatch(pdebench.NAME, name) for name in files) and len(files) >= 3
    assert [objection(source.url) for source in files.values()] == [""] * len(files)
    assert (
        len({source.md5 for source in files.values()})
        == len({source.url for source in files.values()})
        == len(files)
    )


@pytest.mark.skipif(
    not MIRROR, reason="TRADEWIND_MIRROR is not set: no list of PDEBench's files to compare with"
)
def test_the_pins_are_pdebenchs_own(settings):
    with (Path(MIRROR) / "pde/pdebench_data_urls.csv").open(encoding="utf-8") as text:
        listed = {row["Filename"]: (row["URL"], row["MD5"]) for row in csv.DictReader(text)}
    files = settings.datasets["navier_stokes_pdebench"].files
    assert {name: (source.url, source.md5) for name, source in files.items()} == {
        name: listed[name] for name in files
    }
    sums = [md5 for name, (_, md5) in listed.items() if re.fullmatch(pdebench.NAME, name)]
    assert (len(sums), len(set(sums))) == (274, 250)  # why the reader looks for copies


def test_the_weather_is_the_documents_year_and_its_two_months_select_and_test(settings):
    plan = settings.datasets["weather_era5"].cds
    assert set(plan.variables) == set(weather.INPUTS) and (
        plan.step_h,
        plan.grid_deg,
        plan.area_deg,
    ) == (1, 0.25, None)
    hours = np.concatenate(
        [
            np.arange(np.datetime64(month), np.datetime64(month) + 1).astype("datetime64[h]")[:1]
            for month in plan.months
        ]
    )
    whole = [
        np.arange(hour, (hour.astype("datetime64[M]") + 1).astype("datetime64[h]"))
        for hour in hours
    ]
    context, _, split, _ = weather.pairs(np.sort(np.concatenate(whole)).astype("datetime64[ns]"))
    months = np.sort(np.concatenate(whole))[context].astype("datetime64[M]").astype(str)
    assert {k: sorted(set(months[split == k])) for k in range(3)} == {
        0: [f"2000-{m:02d}" for m in range(1, 13)],
        1: ["2010-01"],
        2: ["2010-09"],
    }
    assert np.bincount(split).tolist() == [8784 - 48, 744 - 48, 720 - 48]


def test_darcy_is_solved_on_the_documents_grid_and_keeps_1600_samples_to_learn_from(settings):
    plan = settings.datasets["darcy_1024"].darcy
    assert (
        plan.lattice * plan.refinement == 1024
        and plan.train - plan.train // 10 == EPOCHS["darcy_1024"][0]
    )


def test_steps_are_epochs_times_batches_and_patience_ends_none(settings):
    full = settings.profiles["full"]
    for dataset, (sets, epochs) in EPOCHS.items():
        budget = full.learning[dataset]
        assert budget.steps == epochs * math.ceil(sets / 128) and budget.batch == 128
        assert budget.patience * budget.validate_every >= budget.steps
    files = len(settings.datasets["navier_stokes_pdebench"].files)
    assert (pdebench.parts(files) == 0).sum() * 4 * (1000 - pdebench.GAP) == EPOCHS[
        "navier_stokes_pdebench"
    ][0]

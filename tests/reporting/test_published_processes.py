"""What stands beside neural processes, on and off the grid: each companion finds its printed
number, and an arm of its own."""

import csv
from pathlib import Path

import pytest

from stages import params
from stages.fields.grids import printed as grids
from stages.fields.processes import printed as processes

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("experiment", "family", "companions"),
    [
        ("processes", "processes", lambda name: processes.companions(name).losses),
        ("on_off_grid", "grids", grids.companions),
    ],
)
def test_every_companion_finds_its_printed_number_beside_a_set_and_an_arm_that_can_be_run(
    monkeypatch, experiment, family, companions
):
    monkeypatch.chdir(ROOT)
    with Path("reports", experiment, "companions.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    found = companions(experiment)
    assert sorted(found) == sorted(row["arm"] for row in rows) and rows
    assert all(found[row["arm"]].table == row["table"] for row in rows)
    settings = params.load()
    sets = {
        dataset
        for profile in settings.profiles.values()
        for dataset in getattr(profile.families.get(family), "datasets", ())
    }
    for row in rows:
        dataset, _, arm = row["arm"].partition("/")
        model, _, variant = arm.partition("-")
        assert dataset in sets and variant in settings.models[model].arms, row

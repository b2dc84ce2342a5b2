"""reports/curves-PROFILE.csv holds the points of metrics.json, and DVC draws them by our template
with what that template reads."""

import csv
import json
import re
from pathlib import Path

import pytest

from stages.page import curves
from stages.tables import parts

ROOT = Path(__file__).parents[2]
CONTENT = {
    "cells": {
        "sky/msa-s0": {
            "history": {"val": [[100, 0.5], [200, 1 / 3]]},
            "by_lead": {
                "005": {"rmse_component_kn": {"value": 7.25}},
                "030": {"nse": {"value": 1}},
            },
        },
        "sky/knn": {},
    },
    "costs": {"gmlp": {"32": 26214400}},
}
LOSS, LEAD, COST = (
    "winds/sky: validation loss by steps",
    "winds/sky: RMSE per component [kn] by lead [min]",
    "winds: operations by tokens",
)


def test_losses_errors_by_lead_and_costs_become_points(tmp_path):
    curves.write(tmp_path / "made.csv", {"winds": CONTENT})
    with (tmp_path / "made.csv").open(newline="") as stream:
        rows = [tuple(row) for row in csv.reader(stream)]
    assert rows == [
        curves.COLUMNS,
        (LOSS, "msa-s0", "100", "0.5"),
        (LOSS, "msa-s0", "200", "0.333333"),
        (LEAD, "msa-s0", "5", "7.25"),
        (COST, "gmlp", "32", "2.62144e+07"),
    ]


@pytest.mark.parametrize("profile", ["mini", "sample"])
def test_those_that_git_keeps_are_of_every_experiment_that_has_a_curve(profile):
    with (ROOT / f"reports/curves-{profile}.csv").open(newline="") as stream:
        told = {row["figure"].partition("/")[0].partition(":")[0] for row in csv.DictReader(stream)}
    homes = [file.parent for file in (ROOT / "reports").glob(f"*/{profile}/metrics.json")]
    have = {home.parts[-2] for home in homes if any(curves.points("x", parts.here(home)))}
    apart = {home.parts[-2] for home in homes if parts.lacking(home)}  # what is not here may add
    assert have <= told <= have | apart and len(told) > 5


def test_the_template_reads_the_columns_and_takes_what_dvc_puts_in():
    text = (ROOT / ".dvc/plots/curves.json").read_text()
    template = json.loads(text)
    assert template["data"]["values"] == "<DVC_METRIC_DATA>"
    read = set(re.findall(r'"field": "(\w+)"', text)) | set(re.findall(r"datum\.(\w+)", text))
    made = {one["as"] for one in template["transform"]}
    assert read - made == {*curves.COLUMNS, "rev"}

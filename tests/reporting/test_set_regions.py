"""Regions, overlaps and tightness in tables, beside what is printed of them."""

import pytest
import sets_project
from sets_project import FAILURES, FIELDS, N

from stages.fields import page as set_page
from stages.fields import results as set_results
from stages.fields import tables as set_tables
from stages.fields.claims import overlapping
from stages.fields.printed import sets, theirs, tightness
from stages.page.result import NOT_PUBLISHED


@pytest.fixture(scope="module", autouse=True)
def project(tmp_path_factory):
    """Both experiments evaluated; the working folder of the module's tests."""
    with pytest.MonkeyPatch.context() as patch:
        root = tmp_path_factory.mktemp("regions")
        patch.chdir(root)
        sets_project.build(root)
        yield root


def measured(dataset: str, errors: dict[str, float], **more: float) -> dict:
    """Arms of one seed with these MSEs; `more`: metric -> value for each, or, with probes, what
    they were."""
    return {
        f"{dataset}/{arm}": {
            "seeds": 1,
            "metrics": {
                name: {"mean": one, "unit": "1", "n": N}
                for name, one in {"mse": value, **more}.items()
            },
        }
        for arm, value in errors.items()
    }


def test_training_errors_stand_beside_the_printed_ones_where_they_were_measured():
    arms = measured("poisson", {"msa-shared-20k": 0.03}, mse_train=0.02) | measured(
        "poisson", {"mean": 0.4}
    )
    table, _notes = set_tables.learned(arms, "poisson", sets(FIELDS))
    assert table.rows == (
        (
            "msa-shared-20k",
            "0.0300",
            "0.0200",
            "1.50",
            theirs(sets(FIELDS)["poisson", "msa-shared-20k"]["mse_train"]),
        ),
    )
    assert (
        "thesis C.3" in table.rows[0][4]
        and set_tables.learned(measured("poisson", {"mean": 0.4}), "poisson", {}) is None
    )


def test_models_trained_in_regions_stand_by_overlap_beside_both_printed_tables():
    arms = {}
    for share, error in ((100, 0.0004), (0, 0.01), (2, 0.0081)):
        arms |= measured(
            f"darcy_overlap_{share}",
            {"msa-shared-5k": error, "mean": 0.02},
            rmse=error**0.5,
            rmse_train=0.05,
        ) | measured("copies", {"gng-plain-5k": 1.0})
    table, notes = set_tables.regions(arms, sets(FAILURES))
    found = [dict(zip(table.titles, row, strict=True)) for row in table.rows]
    assert [row["context from the targets' quarter"] for row in found] == ["0 %", "2 %", "100 %"]
    assert [row["RMSE, test"] for row in found] == ["0.100", "0.0900", "0.0200"] and [
        row["MSE of the mean's [%]"] for row in found
    ] == ["50.0", "40.5", "2.0"]
    assert [row["printed, test"].split("‡")[0] for row in found] == [
        "0.140",
        "0.150",
        "0.0300",
    ] and "thesis C.8" in found[0]["printed, test"]
    assert (
        found[0]["printed, training"].startswith("0.0700")
        and "thesis C.9" in found[0]["printed, training"]
        and "metric not stated" in notes
    )
    (copied, *_), (parted, *_) = set_results.across(FAILURES, arms)
    assert "figure 3.4" in copied and "C.8 and C.9" in parted
    assert set_tables.regions(measured("darcy_16", {"msa-shared-5k": 1.0}), {}) is None


def test_the_list_of_results_tells_what_is_printed_of_an_overlap_and_of_nothing_else():
    printed = sets(FAILURES)
    told = set_page.regional(printed, "darcy_overlap_25", "msa-shared-5k")
    assert told.startswith("0.140") and "thesis C.8" in told and told.endswith("an error not named")
    others = (
        ("darcy_overlap_25", "mean"),
        ("darcy_overlap_3", "msa-shared-5k"),
        ("darcy_16", "msa-shared-5k"),
    )
    assert {set_page.regional(printed, *one) for one in others} == {NOT_PUBLISHED}


@pytest.mark.parametrize(
    "dataset, parts",
    [("darcy_overlap_25", ("darcy", 25)), ("darcy_16", ("", 0)), ("darcy_overlap_x", ("", 0))],
)
def test_an_overlap_is_in_its_name(dataset, parts):
    assert overlapping(dataset) == parts


def test_tightness_goes_from_near_to_far_above_the_printed_winds():
    def value(one):
        return {"value": one, "unit": "1", "n": 9}

    cells = {
        "darcy/msa-shared-5k-s0": {
            "probes": {
                "tightness": {"0.5-1": value(0.1), "2.5-inf": value(0.4)},
                "inputs": {"effective": value(3.0)},
            }
        }
    }
    table, notes = set_tables.tightness(cells, "darcy", tightness())
    assert table.titles == ("model", "0.5-1, MSE", "2.5 and more, MSE") and table.rows[0] == (
        "msa-shared-5k",
        "0.100",
        "0.400",
    )
    assert [row[0] for row in table.rows[1:]] == [
        "printed of winds [kn], msa",
        "printed of winds [kn], tfs",
    ]
    assert (
        table.rows[1][1].startswith("5.56 ± 0.49")
        and table.rows[2][2].startswith("10.5 ± 0.61")
        and "kn by magnitude" in notes
    )
    assert set_tables.inputs(cells, "darcy").rows == (("msa-shared-5k", "1", "3.00", "–"),)
    assert set_tables.tightness({}, "darcy", {}) is None and set_tables.inputs({}, "darcy") is None

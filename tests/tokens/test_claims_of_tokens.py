"""Claims that compare two amounts of data: H-2 on SST-2, H-5 on shapes."""

from pathlib import Path

import pytest

from stages import files
from stages.tokens import claims

HYPER, ATTENTION, MIXER = "hypermixing-tied", "self_attention-post_norm", "mlp_mixer-post_norm"
SEEDS = (0, 1, 2)


def evaluated(home: Path, name: str, metric: str, levels: dict[str, float], about: dict) -> None:
    """A set's metrics.json: three seeds an arm, a per mille apart."""
    cells = {
        f"{arm}-w-s{seed}": {"metrics": {metric: {
            "value": value * (1 + 1e-3 * seed), "low": value * 0.999, "high": value * 1.003,
            "n": 600}}}
        for arm, value in levels.items() for seed in SEEDS
    }  # fmt: skip
    (home / "evaluated" / name).mkdir(parents=True)
    content = {"cells": cells, "about": about}
    files.write_json(home / "evaluated" / name / "metrics.json", content)


@pytest.mark.parametrize(("tenth", "verdict"), [(0.04, "holds"), (-0.04, "fails")])
def test_less_data_is_judged_by_the_lead_over_attention(tenth, verdict, tmp_path):
    home = tmp_path / "reports/token_mixing/sample"
    for name, every, lead in (("sst2", 1, 0.0), ("sst2_tenth", 10, tenth)):
        about = {"task": "label", "text": {"form": "sst2_text"}, "every": every}
        evaluated(home, name, "accuracy", {HYPER: 0.75 + lead, ATTENTION: 0.75}, about)
    entries = {entry["id"]: entry for entry in claims.check(home)}
    assert entries["H-2"]["verdict"] == verdict and entries["H-2"]["dataset"] == "sst2"
    assert "gmlp" in entries["H-1"]["why"], "H-1 is judged on the text where there is one"


SHAPES = {HYPER: 0.2, ATTENTION: 0.4, MIXER: 1.0, "unmixed-post_norm": 6.0}


def h5_of(home: Path, **fewer: float) -> dict:
    """H-5 of errors on shapes, and of those with a quarter of the rows."""
    arms = {"hyper": HYPER, "attention": ATTENTION}
    quarter = {arms[name]: error for name, error in fewer.items()}
    for name, every, levels in (("shapes", 1, SHAPES), ("shapes_quarter", 4, quarter)):
        if levels:
            about = {"task": "value", "made": {"task": "shapes"}, "every": every,
                     "rows": {"train": 400 // every}}  # fmt: skip
            evaluated(home, name, "mse", levels, about)
    return next(one for one in claims.check(home) if one["id"] == "H-5")


@pytest.mark.parametrize(
    ("hyper", "attention", "verdict"),
    [(0.5, 0.6, "holds"), (2.0, 2.5, "fails"), (0.5, 0.4, "fails")],
)
def test_four_times_the_rows_are_judged_by_the_error_of_a_quarter(
    hyper, attention, verdict, tmp_path
):
    entry = h5_of(tmp_path / "reports/token_mixing/mini", hyper=hyper, attention=attention)
    assert entry["verdict"] == verdict
    part = entry["compared"]["error of MLPMixer with 4 × the rows / HyperMixer"]
    assert part["value"] == pytest.approx(1 / hyper, rel=0.01)
    assert part["verdict"] == ("holds" if hyper < 1 else "fails")
    (few,) = (one for name, one in entry["compared"].items() if name.endswith("of the rows"))
    assert few["value"] == pytest.approx(hyper / attention, rel=0.01)


def test_without_the_quarter_more_data_is_undecided(tmp_path):
    entry = h5_of(tmp_path / "reports/token_mixing/mini")
    assert entry["verdict"] == "undecided" and "one amount" in entry["why"]


def test_with_a_quarter_attention_is_not_judged_by_more_rows(tmp_path):
    entry = h5_of(tmp_path / "reports/token_mixing/mini", hyper=0.5)
    assert entry["verdict"] == "undecided" and "no trained self_attention" in entry["why"]


def test_of_many_amounts_the_fewest_rows_and_four_times_as_many_are_judged(tmp_path):
    home = tmp_path / "reports/shapes/sample"
    for rows, every, scale in ((25000, 1, 0.1), (6250, 4, 0.2), (404, 62, 1.0), (100, 250, 3.0)):
        about = {"task": "value", "made": {"task": "shapes"}, "every": every,
                 "rows": {"train": rows}}  # fmt: skip
        levels = {arm: scale * error for arm, error in SHAPES.items()}
        evaluated(home, f"shapes_{rows}", "mse", levels, about)
    entries = {one["id"]: one for one in claims.check(home)}
    assert set(entries) == {"H-5", "H-6", "H-9"}, "an experiment of shapes has no say on texts"
    assert entries["H-5"]["dataset"] == "shapes_404"
    part = entries["H-5"]["compared"]["error of MLPMixer with 4 × the rows / HyperMixer"]
    assert part["value"] == pytest.approx(1.0 / (3.0 * 0.2), rel=0.01)
    assert entries["H-9"]["dataset"] == "shapes_25000", "what more rows solve is judged by the most"


@pytest.mark.parametrize(("alone", "verdict"), [(0.90, "holds"), (0.97, "fails")])
def test_what_is_needed_costs_five_points_where_it_lacks(alone, verdict, tmp_path):
    home = tmp_path / "reports/token_mixing/mini"
    levels = {HYPER: 0.99, "hypermixing-untied": 0.97, "hypermixing-token_only": alone,
              "unmixed-post_norm": 0.5, "weight_vector-post_norm": 0.9}  # fmt: skip
    about = {"task": "label", "made": {"task": "pairs"}, "every": 1}
    evaluated(home, "pairs", "accuracy", levels, about)
    entry = next(one for one in claims.check(home) if one["id"] == "H-7")
    assert entry["verdict"] == verdict and "0.05 of accuracy that is lost" in entry["why"]
    bars = {name: part["bar"] for name, part in entry["compared"].items()}
    assert [bar for name, bar in bars.items() if "untied" in name] == [0.0]
    assert sorted(bars.values()) == [0.0, 0.05, 0.05, 0.05]


@pytest.mark.parametrize(("steps", "verdict"), [(900, "holds"), (100, "fails")])
def test_an_experiment_that_draws_has_one_claim_of_the_network_trained_longest(
    steps, verdict, tmp_path
):
    home = tmp_path / "reports/pictures/sample"
    good, poor = "grid_attention-told-w64", "self_attention-pre_norm-w64"
    cells = {}
    for arm, met, last in ((good, 0.9, steps), (poor, 0.4, 500)):
        for seed in SEEDS:
            share = {"value": met + 1e-3 * seed, "low": met - 0.01, "high": met + 0.01, "n": 200}
            other = {"value": 0.2 + 1e-3 * seed, "low": 0.19, "high": 0.21, "n": 200}
            cells[f"{arm}-s{seed}"] = {
                "metrics": {"satisfied": share, "satisfied_other": other},
                "history": {"val": [[50, 0.2], [last, 0.1]]},
            }
    cells["true"] = {"metrics": {"satisfied": {"value": 1.0, "low": 1.0, "high": 1.0, "n": 200}}}
    (home / "evaluated/pictures").mkdir(parents=True)
    about = {"task": "next", "made": {"task": "pictures"}, "every": 1}
    files.write_json(home / "evaluated/pictures/metrics.json", {"cells": cells, "about": about})
    (entry,) = claims.check(home)
    assert entry["id"] == "H-10" and entry["verdict"] == verdict

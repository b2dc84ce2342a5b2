"""Random searches: shared draws, what is expected of them, and the claim that rests on them."""

import itertools
import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

from stages.errors import ParamsError
from stages.params import checked, load
from stages.sweeps import space
from stages.sweeps.ledger import Plan
from stages.sweeps.store import Store
from stages.tokens import acquire, claims, figures, prepare, sweep, tables, trials
from stages.tokens.contract import Said
from stages.tokens.sets import Sets
from stages.tokens.settings import Made, Split, Tokens, Tuning, tokens_of
from stages.training import loop

MADE = {"seed": 0, "task": "pairs", "rows": 300, "nouns": 4, "fillers": 0}
TUNING = {"trials": 3, "steps": 6, "validate_every": 3, "batch": 8, "size": "w32",
          "learning_rate": {"low": 0.001, "high": 0.1, "log": True},
          "arms": {"hypermixing": "tied", "self_attention": "post_norm"}}  # fmt: skip


@pytest.fixture(scope="module")
def prepared(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("tuned")
    (folder / "raw").mkdir(), (folder / "prepared").mkdir()
    made = checked(Made, MADE, "datasets.pairs.made")
    acquire.make(made, folder / "raw")
    prepare.write(folder / "raw", folder / "prepared", made, Split(train=150, val=50))
    return folder / "prepared"


def score(model: str, prepared: Path, kept: Path) -> sweep.Score:
    settings = loop.Settings(6, 3, 6, 0.001, 4.0, 0, slices=8, schedule="cosine")
    arguments = {"width": 16, "feed": 16, "layout": "post_norm"}
    return sweep.Score(model, arguments, prepared, settings, 1, kept)


def table(errors: list[float | None]) -> pl.DataFrame:
    rates = [0.001 * (1 + draw) for draw in range(len(errors))]
    return pl.DataFrame(
        {"draw": [*range(len(errors))], "learning_rate": rates, "error_val": errors},
        schema_overrides={"error_val": pl.Float64},
    )


def test_the_expected_best_is_the_mean_over_all_ways_to_draw():
    values = np.array([0.5, 0.9, 0.7])
    found = trials.expected(values)
    assert found[0] == pytest.approx(values.mean())
    for count in (2, 3):
        every = [max(one) for one in itertools.product(values, repeat=count)]
        assert found[count - 1] == pytest.approx(np.mean(every))
    np.testing.assert_allclose(trials.expected(np.stack((values, values))), [found, found])


def test_who_is_good_at_any_rate_needs_one_trial_and_who_is_at_one_alone_needs_all():
    assert trials.needed(np.full(10, 0.9)) == 1
    assert trials.needed(np.array([0.9] * 3 + [0.1] * 7)) < 10
    assert trials.needed(np.array([0.9] + [0.1] * 9)) == 11, "more than there were"
    assert trials.accuracies(table([0.25, None])).tolist() == [0.75, 0.0], "diverged: none right"


def test_all_models_are_tried_at_the_same_rates_and_again_to_the_same_bytes(
    prepared, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    wanted, found = checked(Tuning, TUNING, "tuning").sweep(), {}
    for number, model in enumerate(("hypermixing", "self_attention", "hypermixing")):
        plan, folder = Plan(wanted, 0, "pairs"), tmp_path / f"sweeps/pairs{number}/{model}"
        folder.parent.mkdir(parents=True)
        objective = score(model, prepared, tmp_path / "kept")
        sweep.swept(plan, Store(f"key{number}"), objective, folder, 1)
        found[number] = folder / trials.TRIALS
    assert found[0].read_bytes() == found[2].read_bytes()
    rows = trials.searched(tmp_path)
    one, other = rows["pairs0"]["hypermixing"], rows["pairs1"]["self_attention"]
    assert one["learning_rate"].to_list() == other["learning_rate"].to_list()
    assert one["learning_rate"].n_unique() == 3 and one["error_val"].is_between(0, 1).all()
    expected = space.proposed(wanted, 0, "pairs", 1)["learning_rate"]
    assert one["learning_rate"][1] == expected


def test_the_error_is_counted_on_the_rows_that_select(prepared):
    data = Sets.open(prepared)

    class Says(torch.nn.Module):
        def forward(self, batch):
            return Said(torch.eye(3)[(batch.targets + (batch.targets == 0)) % 3])

    chosen = data.targets[data.slices("val")]
    assert 0 < (chosen == 0).float().mean() < 1
    assert sweep.wrong(Says(), data) == pytest.approx(float((chosen == 0).float().mean()))


def test_training_that_diverges_has_no_finite_error(prepared, tmp_path, monkeypatch):
    monkeypatch.setattr(Sets, "loss", lambda *_: torch.tensor(math.nan, requires_grad=True))
    objective = score("hypermixing", prepared, tmp_path)
    assert objective({"learning_rate": 0.01}) == math.inf


def searched(own: list[float], theirs: list[float]) -> dict[str, dict[str, pl.DataFrame]]:
    return {"pairs": {"hypermixing": table(own), "self_attention": table(theirs)}}


FLAT, STEEP = [0.02] * 20, [0.01] + [0.9] * 19


@pytest.mark.parametrize(
    ("own", "theirs", "verdict"),
    [
        (FLAT, [0.01] * 4 + [0.9] * 16, "holds"),
        ([0.01] * 4 + [0.9] * 16, FLAT, "fails"),
        (FLAT, FLAT, "undecided"),
        ([0.4] * 20, STEEP, "undecided"),
        (STEEP, STEEP[::-1], "undecided"),
    ],
)
def test_tuning_is_judged_by_trials_over_shared_draws(own, theirs, verdict):
    entry = claims.h4(claims.Evaluation("–", {}), searched(own, theirs))
    assert entry["verdict"] == verdict and entry["dataset"] == "pairs"
    assert ("untrained" in entry["why"]) == (own[0] > 0.05)
    both = own == STEEP
    assert ("both need more than the 20 trials" in entry["why"]) == both
    (part,) = entry["compared"].values()
    assert ("value" in part) != both


def test_a_search_has_a_row_a_model_and_a_figure():
    mine = {
        model: trials.search_entry(rows) for model, rows in searched(FLAT, STEEP)["pairs"].items()
    }
    found = tables.tuning({"tuning": {"pairs": mine}}, "pairs")
    assert [row[0] for row in found.rows] == ["hypermixing", "self_attention"]
    assert {len(row) for row in found.rows} == {len(found.titles)}
    assert [row[-2] for row in found.rows] == ["1", "more than 20"]
    assert [mine[row[0]]["needed"] for row in found.rows] == [1, None]
    left, right = figures.tuning(mine).axes
    assert len(left.lines) == len(right.lines) == 2


def test_a_search_without_an_arm_is_told_and_every_profile_names_arms_that_there_are():
    told = {"datasets": (), "tuned": {"datasets": ("x",), "models": ("hypermixing",)}}
    with pytest.raises(ParamsError, match="tuning: hypermixing of x is missing"):
        checked(Tokens, told, "families.tokens")
    parameters = load(Path(__file__).parents[2] / "params.yaml")
    for profile in ("mini", "sample", "full"):
        for one in tokens_of(parameters, profile).tuning.values():
            for model, arm in one.arms.items():
                known = parameters.models[model]
                assert arm in known.arms and one.size in known.sizes

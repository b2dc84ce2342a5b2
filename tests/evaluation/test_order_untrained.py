"""The claims about sequences in any order: a model that has not learned decides nothing."""

import pytest
from order_numbers import DIFFUSION, RANDOM, made, near, number

from stages.sequences import claims, learned
from stages.sequences.comparisons import Ordered
from stages.spreads import Spreads


def with_copied(share: dict[str, float]) -> Ordered:
    """Mazes of which the arms copy a share."""
    measured = made("maze", {RANDOM: near(0.97), DIFFUSION: near(0.6)})
    for cell, entry in measured.cells.items():
        for prompts in entry["samplers"].values():
            value = next(value for arm, value in share.items() if cell.startswith(arm))
            prompts["prompt"]["metrics"]["copied"] = number(value, 0.02)
    return measured


def test_a_model_that_copies_no_mazes_decides_nothing_about_its_samples():
    assert claims.a8(with_copied({RANDOM: 0.99, DIFFUSION: 0.9}))["verdict"] == "holds"
    entry = claims.a8(with_copied({RANDOM: 0.99, DIFFUSION: 0.1}))
    assert entry["verdict"] == "undecided"
    assert f"untrained: {DIFFUSION} copies 10 % of the mazes; measured: difference" in entry["why"]
    assert claims.a1(with_copied({RANDOM: 0.51, DIFFUSION: 0.9}))["verdict"] == "undecided"
    assert claims.a6(with_copied({RANDOM: 0.2, DIFFUSION: 0.9}))["verdict"] == "undecided"


def test_passes_and_densities_of_a_model_that_copies_no_mazes_decide_nothing():
    for copied, verdict in ((0.99, "holds"), (0.0, "undecided")):
        measured = with_copied({RANDOM: copied, DIFFUSION: 0.9})
        for entry in measured.cells.values():
            entry["path_posteriors"] = {"0": number(0.05, 0.01)}
        for claim in (claims.a7, claims.a9):
            entry = claim(measured)
            assert entry["verdict"] == verdict
            assert ("untrained: " in entry["why"]) == (verdict == "undecided")


def test_densities_of_mazes_are_judged_by_the_path_whatever_all_cells_are_in_the_mean():
    measured = with_copied({RANDOM: 0.99, DIFFUSION: 0.9})
    for entry in measured.cells.values():
        entry["posteriors"] = {"0": number(0.06, 0.01)}
    entry = claims.a9(measured)
    assert entry["verdict"] == "undecided" and "path_posteriors/0 of" in entry["why"]
    for cell in measured.cells.values():
        cell["path_posteriors"] = {"0": number(1.0, 0.01)}
    entry = claims.a9(measured)
    assert entry["verdict"] == "fails" and "a copied maze without a path has 1" in entry["why"]


def test_densities_of_mazes_are_judged_where_only_the_kinds_metrics_together_have_a_spread():
    """Which hold squared feet, too: what they move by absolutely says nothing of a distance."""
    measured = with_copied({RANDOM: 0.99, DIFFUSION: 0.9})
    row = {"relative": 0.2, "absolute": 2e5, "scaled": 0.1, "freedom": 30}
    measured.spreads = Spreads(
        {"seeds": {"sigma_gpt": {"*": row, "copied": row | {"absolute": 0}}}}
    )
    for cell in [*measured.cells]:
        if not cell.endswith("-s0"):
            del measured.cells[cell]
    for value, verdict in ((0.03, "holds"), (0.09, "undecided"), (0.5, "fails")):
        for entry in measured.cells.values():
            entry["path_posteriors"] = {"0": number(value, 0.001)}
        entry = claims.a9(measured)
        assert entry["verdict"] == verdict
        low, high = entry["interval"]
        assert low == pytest.approx(value / 1.41, rel=0.05) and high < 1.5 * value


@pytest.mark.parametrize(("own", "bound", "why"), [(1.0, 1.1, ""), (1.0, 1.3, "needs 1.3 nats")])
def test_a_model_no_better_than_each_places_frequencies_decides_nothing(own, bound, why):
    measured = made("step", {RANDOM: near(0.97), DIFFUSION: near(0.6)})
    for cell, entry in measured.cells.items():
        name = "nats" if cell.startswith(RANDOM) else "nats_bound"
        entry["metrics"][name] = number(own if name == "nats" else bound, 0.01)
    measured.cells["marginals"] = {"metrics": {"nats": number(1.2, 0.01)}}
    entry = claims.a8(measured)
    assert entry["verdict"] == ("undecided" if why else "holds") and why in entry["why"]
    measured.kind = "product"  # whose marginals are the law
    assert learned.untrained(measured, DIFFUSION) == ""


def test_passes_and_densities_of_a_law_are_undecided_where_its_model_has_not_learned():
    measured = made(
        "walk", {RANDOM: near(0.97)}, apart={"0": 0.5}, bounds={"5": {"mean": 3.2, "sd": 0.6}}
    )
    measured.cells["marginals"] = {"metrics": {"nats": number(1.2, 0.01)}}
    for nats, undecided in ((1.0, False), (1.3, True)):
        for cell, entry in measured.cells.items():
            if cell.startswith(RANDOM):
                entry["metrics"]["nats"] = number(nats, 0.01)
        for claim in (claims.a6, claims.a7, claims.a9):
            entry = claim(measured)
            assert ("needs 1.3 nats" in entry["why"]) == undecided
            assert (entry["verdict"] == "undecided") == undecided

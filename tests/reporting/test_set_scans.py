"""Figures C.7 and C.4: sizes told by their names, sentences that follow from the numbers, and a
benchmark's rows shown as they were measured."""

from pathlib import Path

import pytest
from PIL import Image
from set_benchmark import times

from stages import files
from stages.fields import scans as set_scans
from stages.fields import sensitivity

SIZES = {
    "msa-shared-layers_1": (0.4, 8_737),
    "msa-shared-layers_2": (0.2, 13_609),
    "msa-shared-layers_8": (0.3, 42_841),
    "msa-shared-width_8": (0.5, 2_321),
    "msa-shared-width_64": (0.1, 126_081),
    "geofno-plain-width_4": (0.6, 13_439),
    "geofno-plain-width_16": (0.61, 202_547),
}


def found(errors=SIZES, dataset="poisson_rooms", step=600):
    """Arms and cells of these errors; intervals lie a twentieth to either side, the mean leaves
    1."""

    def number(mse):
        return {"mean": mse, "low": 0.95 * mse, "high": 1.05 * mse, "unit": "1", "n": 40}

    arms = {
        f"{dataset}/{arm}": {"seeds": 1, "metrics": {"mse": number(mse)}}
        for arm, (mse, _) in {**errors, "mean": (1.0, 0)}.items()
    }
    cells = {
        f"{dataset}/{arm}-s0": {
            "metrics": {},
            "parameters": count,
            "history": {"val": [[100, 1.0], [step, 0.5]]},
        }
        for arm, (_, count) in errors.items()
    }
    return arms, cells


def test_each_varied_argument_is_a_panel_in_its_own_order_and_other_arms_are_none():
    arms, cells = found(
        {
            **SIZES,
            "msa-shared-20k": (0.2, 18_481),
            "cnp-shared-width_8": (0.2, 1),
            "msa-shared-layers_16": (0.7, 80_000),
        }
    )
    scans = sensitivity.scans(arms, cells, "poisson_rooms", {})
    assert [
        (scan.figure, scan.model, [point.value for point in scan.points]) for scan in scans
    ] == [("C.7a", "MSA", [1, 2, 8, 16]), ("C.7c", "MSA", [8, 64]), ("C.7e", "GeoFNO", [4, 16])]
    assert (
        sensitivity.scans(arms, cells, "poisson", {}) == []
        and sensitivity.table(arms, cells, "poisson", {}) is None
    )


def test_a_size_has_a_row_with_its_parameters_error_and_share_of_the_means():
    table, _ = sensitivity.table(*found(), "poisson_rooms", {})
    assert table.rows[0] == (
        "C.7a, b",
        "MSA, layers",
        "1",
        "8,737",
        "–",
        "0.500",
        "✓",
        "0.400 [0.380, 0.420]",
        "40.0",
    ) and len(table.rows) == len(SIZES)


def test_what_is_seen_follows_from_the_numbers():
    arms, cells = found()
    _, words = sensitivity.table(arms, cells, "poisson_rooms", {})
    assert "600 steps each, 1 seed," in words
    assert (
        "C.7a: from layers 1 to 8 the error of MSA falls and then rises; it is least at 2 (0.200) "
        "and 2.00 times as large at 1; the two intervals do not meet"
    ) in words
    assert "C.7c: from hidden dimension 8 to 64 the error of MSA falls throughout" in words
    assert (
        "GeoFNO rises throughout; it is least at 4 (0.600) and 1.02 times as large at 16; the "
        "two intervals meet"
    ) in words
    cells["poisson_rooms/msa-shared-width_8-s0"]["history"]["val"] = [[400, 1.0]]
    assert "from 400 to 600 steps each" in sensitivity.table(arms, cells, "poisson_rooms", {})[1]


def at_rates(losses, argument="layers"):
    """Arms, cells and rates of layers trained at several rates; losses {rate: {layers: least
    validation loss}}, the test error half of it."""
    arms, cells, rates = {}, {}, {}
    for (rate, of_size), word in zip(losses.items(), ("", "_slow", "_fast"), strict=False):
        named = {value: f"msa-shared{word}-{argument}_{value}" for value in of_size}
        more = found({named[value]: (loss / 2, 9) for value, loss in of_size.items()})
        for value, loss in of_size.items():
            more[1][f"poisson_rooms/{named[value]}-s0"]["history"]["val"] = [
                [100, 9.0],
                [200, loss],
                [300, loss + 1],
            ]
        arms, cells = arms | more[0], cells | more[1]
        rates |= {name: rate for name in more[0] if not name.endswith("mean")}
    return arms, cells, rates


CROSSING = {
    2e-3: {1: 0.4, 2: 0.3, 8: 0.9},
    6e-4: {1: 0.8, 2: 0.7, 8: 0.2},
    6e-3: {1: 0.2, 2: 0.6, 8: 1.5},
}


def test_arms_that_differ_in_rate_are_told_together_and_sizes_at_their_best():
    arms, cells, rates = at_rates(CROSSING)
    (scan,) = sensitivity.scans(arms, cells, "poisson_rooms", rates)
    assert (scan.figure, scan.rated) == ("C.7a", "C.7b") and len(scan.trained) == 9
    assert [(point.value, point.rate, point.loss, point.mse["mean"]) for point in scan.points] == [
        (1, 6e-3, 0.2, 0.1),
        (2, 2e-3, 0.3, 0.15),
        (8, 6e-4, 0.2, 0.1),
    ]
    assert {
        value: [(point.rate, point.loss) for point in points]
        for value, points in scan.lines().items()
    }[8] == [(6e-4, 0.2), (2e-3, 0.9), (6e-3, 1.5)]
    for other in ("poisson", "poisson_room", "rooms", "hour_sets"):
        assert sensitivity.scans(arms, cells, other, rates) == []
    halls = [
        {f"halls/{name.split('/')[1]}": one for name, one in of.items()} for of in (arms, cells)
    ]
    assert sensitivity.scans(*halls, "halls", {}) == []
    table, _ = sensitivity.table(arms, cells, "poisson_rooms", rates)
    assert [row[4:7] for row in table.rows[:3]] == [
        ("0.0006", "0.800", ""),
        ("0.002", "0.400", ""),
        ("0.006", "0.200", "✓"),
    ]
    assert sum(row[6] == "✓" for row in table.rows) == 3


def test_the_best_rate_of_each_size_and_the_order_of_sizes_follow_from_the_losses():
    _, words = sensitivity.table(*at_rates(CROSSING)[:2], "poisson_rooms", at_rates(CROSSING)[2])
    assert (
        "300 steps each, 1 seed, at learning rates of 0.0006, 0.002 and 0.006 (" in words
        and "only learns more slowly" not in words
    )
    assert (
        "C.7b: by layers, the validation loss of MSA is least at a learning rate of 0.0006 for 8; "
        "0.002 for 2; 0.006 for 1; from the least loss to the largest the order changes with the "
        "rate: 8, 2 and 1 at 0.0006; 2, 1 and 8 at 0.002; 1, 2 and 8 at 0.006"
    ) in words
    arms, cells, rates = at_rates({rate: {1: 3 * rate, 2: 2 * rate} for rate in (2e-3, 6e-4)})
    _, words = sensitivity.table(arms, cells, "poisson_rooms", rates)
    assert (
        "least at a learning rate of 0.0006 for 1 and 2; from the least loss to the largest "
        "the order is 2 and 1 at every rate"
    ) in words


def test_a_size_whose_rate_is_not_recorded_is_on_no_line_and_one_rate_makes_no_panel():
    arms, cells, rates = at_rates(CROSSING)
    some = {
        name: rate
        for name, rate in rates.items()
        if not name.endswith("layers_1") or "/msa-shared-" in name
    }
    assert list(sensitivity.scans(arms, cells, "poisson_rooms", some)[0].lines()) == [2, 8]
    (scan,) = sensitivity.scans(arms, cells, "poisson_rooms", {})
    assert scan.lines() == {} and sensitivity.rated(scan) == ""


def test_a_rate_is_read_from_the_record_of_the_training_not_from_a_name(tmp_path):
    """The cell's own goes before its model's, and that before its data set's, as in training."""
    budget = {"learning_rate": 5e-3, "rates": {"geofno": 7e-3}}
    own = {
        "msa-shared_slow-layers_1-s0": {},
        "geofno-plain_slow-width_4-s0": {},
        "geofno-plain_fast-width_4-s0": {"training": {"steps": 9, "learning_rate": 9e-3}},
        "msa-shared-layers_4-s0": {"training": {"steps": 9}},
        "msa-shared-20k-s0": {},
    }
    for cell, varied in own.items():
        files.write_json(
            tmp_path / "records" / f"poisson_rooms.{cell}.train.json",
            {"params": {"budget": budget, **varied}},
        )
    names = [f"poisson_rooms/{cell}" for cell in (*own, "msa-shared-layers_2-s0", "mean")]
    assert sensitivity.rates(tmp_path, names) == {
        "poisson_rooms/msa-shared_slow-layers_1": 5e-3,
        "poisson_rooms/geofno-plain_slow-width_4": 7e-3,
        "poisson_rooms/geofno-plain_fast-width_4": 9e-3,
        "poisson_rooms/msa-shared-layers_4": 5e-3,
    }


def test_wind_has_panels_of_its_own():
    arms, cells = found(
        {"geofno-standard-width_4": (0.6, 1), "geofno-standard-width_16": (0.61, 2)}, "hour_sets"
    )
    assert [scan.figure for scan in sensitivity.scans(arms, cells, "hour_sets", {})] == ["C.7g"]


def test_rates_are_drawn_beside_or_below_the_sizes(tmp_path):
    arms, cells, rates = at_rates(CROSSING)
    assert set_scans.sensitive(
        arms, cells, "poisson_rooms", rates, tmp_path / "both.png"
    ) and set_scans.sensitive(arms, cells, "poisson_rooms", {}, tmp_path / "one.png")
    both, one = (Image.open(tmp_path / f"{name}.png").size for name in ("both", "one"))
    assert both[0] > 1.6 * one[0]  # of one argument, beside it
    more = at_rates(CROSSING, "width")
    both, one = (
        Image.open(set_scanned(tmp_path, arms | more[0], cells | more[1], given)).size
        for given in (rates | more[2], {})
    )
    assert both[1] > 1.6 * one[1] and both[0] >= one[0] - 30


def set_scanned(folder, arms, cells, rates):
    """The figure of these arms."""
    assert set_scans.sensitive(arms, cells, "poisson_rooms", rates, folder / f"{len(rates)}.png")
    return folder / f"{len(rates)}.png"


@pytest.mark.parametrize(
    "values, told",
    [
        ([3, 2, 1], "falls throughout"),
        ([1, 2, 3], "rises throughout"),
        ([3, 1, 2], "falls and then rises"),
        ([1, 3, 2], "rises and falls"),
        ([3, 1, 2, 1], "rises and falls"),
    ],
)
def test_how_an_error_runs(values, told):
    assert sensitivity.course(values) == told


def test_both_figures_are_drawn_small_and_with_the_same_bytes_again(tmp_path):
    for number in (1, 2):
        assert set_scans.sensitive(
            *found(), "poisson_rooms", {}, tmp_path / f"c7-{number}.png"
        ) and set_scans.grown(times(), tmp_path / f"c4-{number}.png")
    for name in ("c7", "c4"):
        first, second = ((tmp_path / f"{name}-{number}.png").read_bytes() for number in (1, 2))
        assert (
            first == second
            and len(first) < 60_000
            and Image.open(tmp_path / f"{name}-1.png").size[0] > 600
        )
    assert not set_scans.sensitive(
        *found({}), "poisson_rooms", {}, tmp_path / "none.png"
    ) and not set_scans.grown({}, tmp_path / "none.png")
    set_scans.draw(Path(tmp_path), *found(), tmp_path)
    assert (tmp_path / "poisson_rooms-sensitivity.png").exists() and not (
        tmp_path / "costs.png"
    ).exists()

"""Tables of sequences made from hand-made numbers: how long models learn until GPT's level, and
whether climbs repeat themselves."""

from stages.sequences.reporting import efficiency as order_efficiency
from stages.sequences.reporting import habits as order_habits


def test_steps_to_where_gpt_ends_are_bounds_where_a_curve_does_not_tell_them():
    """GPT ends at 1.0: its level is 1.02. One model had it at its first validation, one never."""
    curves = {
        "left_to_right": [[10, 2.0], [20, 1.0]],
        "random": [[10, 2.0], [90, 1.1]],
        "fractal": [[10, 0.9], [90, 0.8]],
    }
    cells = {
        f"mazes/sigma_gpt-{order}-tiny-s0": {"history": {"val": curve}}
        for order, curve in curves.items()
    }
    table, _ = order_efficiency.efficiency(cells, {"mazes": {"kind": "maze"}}, {})
    found = {row[1]: dict(zip(table.titles, row, strict=True)) for row in table.rows}
    never, early = found["σ-GPT, random, tiny"], found["σ-GPT, fractal, tiny"]
    assert never["GPT's loss + 2 % [nats]"] == "1.02" and never["its steps"] == "20"
    assert never["the model's steps"] == "at least 90" and never["their ratio"] == "at least 4.55"
    assert early["the model's steps"] == "at most 10" and early["their ratio"] == "at most 0.51"
    assert early["steps of the model"] == "at most 10" and early["ratio"] == "at most 0.50"
    assert never["loss of both [nats]"] == "1.1" and never["steps of the model"] == "90"


def test_what_flights_do_stands_above_what_models_make_of_it():
    def told(held, stuck, jumps):
        return {
            name: {"value": value, "unit": "share", "n": 9, "low": value, "high": value}
            for name, value in (("held", held), ("stuck", stuck), ("jumps", jumps))
        }

    cells = {
        "climbs/sigma_gpt-left_to_right-tiny-s0": {
            "samplers": {"left_to_right": {"0": {"metrics": told(0.5, 0.25, 0.01)}}}
        },
        "climbs/persistence": {
            "samplers": {"persistence": {"0": {"metrics": told(1.0, 1.0, 0.0)}}}
        },
    }
    about = {"kind": "climb", "habits": {"0": told(0.4, 0.03, 0.0)}}
    table, note = order_habits.table(cells, about, "climbs")
    assert [row[:3] for row in table.rows] == [
        ("the flights themselves", "–", "–"),
        ("persistence", "1", "persistence"),
        ("GPT (left to right), tiny", "1", "left_to_right"),
    ]
    assert [cell.split(" ")[0] for cell in table.rows[2][3:]] == ["50.0", "25.0", "1.00"]
    assert table.rows[0][4].startswith("3.00") and "6,000 ft/min" in note
    assert order_habits.table(cells, {"kind": "climb"}, "climbs") is None
    assert order_habits.table({}, {"kind": "maze"}, "mazes") is None

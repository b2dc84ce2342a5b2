"""Figure C.4: a benchmark's rows shown as they were measured."""

from set_benchmark import times

from stages.fields import costs
from stages.fields import results as set_results


def test_costs_stand_by_contender_and_size_with_exponent_and_ratio_or_a_dash():
    (title, table), (other, _), (_, models), (met, goals) = costs.tables(times())
    rows = {row[0]: row for row in table.rows}
    assert (
        title == "Time of a training step [ms]"
        and "memory" in other
        and table.titles[1:4] == ("256 points", "4,096 points", "16,384 points")
    )
    assert rows["HyperMixer-MSA"] == (
        "HyperMixer-MSA",
        "2.56",
        "41",
        "164",
        "1.00 (0.90 to 1.10)",
        "0.031 at 16,384 points",
    )
    assert (
        rows["MSA"][-1] == "0.50 at 16,384 points"
        and rows["torch's nn.TransformerEncoder"][-1] == "–"
    )
    assert rows["one layer: torch, plain kernel"][3:5] == ("–", "–")
    assert (
        models.rows[1][3] == "left out: two axes"
        and met == "1 of 2 goals met"
        and [row[-1] for row in goals.rows] == ["met", "missed"]
    )


def test_where_and_how_it_was_measured_is_told_and_how_to_measure_it_where_it_was_not(tmp_path):
    told = costs.measured_on(times(), "mini")
    assert (
        "A processor, 2 cores, 1 thread:" in told
        and "not quiet: other processes used 1.4 cores" in told
    )
    assert (
        costs.read(tmp_path) == {}
        and costs.tables({}) == []
        and "`make bench-fields PROFILE=sample`" in costs.measured_on({}, "sample")
    )
    assert set_results.read_times("failure_modes", "mini") is None
    text = costs.markdown(times(), "mini")
    assert (
        text[0].startswith("## ")
        and costs.YARDSTICK in text
        and len(costs.markdown({}, "mini")) == 4
    )

"""Simulated captures: the simulated set's own bytes, hour by hour, in whole files, for any
stretch of hours."""

from pathlib import Path

import pytest

from stages import cli, params
from stages.errors import InputError
from stages.winds import acquire as acquisition
from stages.winds.sky import capture, simulated

ROOT = Path(__file__).parents[2]
PLAN = params.Simulate(
    seed=5,
    start="2026-01-15T06:00:00Z",
    hours=12,
    aircraft=2,
    update_s=8.0,
    south_west=(45.0, 6.0),
    extent_km=(200.0, 240.0),
    altitude_m=(4000.0, 12000.0),
    dropout=0.08,
    bit_error=0.004,
    airspeed_noise_kt=1.0,
    heading_noise_deg=0.3,
)


@pytest.fixture(scope="module")
def acquired(tmp_path_factory):
    """The simulated data set of that plan."""
    folder = tmp_path_factory.mktemp("acquired")
    simulated.simulate(PLAN, folder)
    return folder


def bytes_of(paths: list[Path]) -> list[bytes]:
    return [path.read_bytes() for path in paths]


def test_captures_are_the_hours_of_the_simulated_set_byte_for_byte(acquired, tmp_path):
    written = capture.capture(PLAN, tmp_path / "drop", 4, 8)
    assert [path.name for path in written] == [
        f"20260115T{hour}0000Z.csv" for hour in (10, 11, 12, 13)
    ]
    assert bytes_of(written) == [
        (acquired / f"frames_{hour:02d}.csv").read_bytes() for hour in range(4, 8)
    ]
    assert min(map(len, bytes_of(written))) > 1000
    assert sorted((tmp_path / "drop").iterdir()) == written, "nothing else is left beside them"


def test_hours_beyond_the_set_go_on_with_the_same_sky(acquired, tmp_path):
    shorter = PLAN.model_copy(update={"hours": 6.0})
    assert bytes_of(capture.capture(shorter, tmp_path, 5, 8)) == [
        (acquired / f"frames_{hour:02d}.csv").read_bytes() for hour in (5, 6, 7)
    ]


def test_another_seed_is_another_sky_and_the_same_seed_the_same(acquired, tmp_path):
    (other,) = bytes_of(capture.capture(PLAN, tmp_path / "other", 0, 1, seed=6))
    (again,) = bytes_of(
        capture.capture(PLAN.model_copy(update={"seed": 7}), tmp_path / "again", 0, 1, seed=5)
    )
    assert other != again == (acquired / "frames_00.csv").read_bytes()


@pytest.mark.parametrize(
    "text",
    [
        "6:2",
        "3:3",
        "-1:4",
        "0:1001",
        "0-6",
        "1.5:3",
        "a:b",
        "",
        ":",
        "0:6:7",
        "\N{SUPERSCRIPT TWO}:6",
    ],
)
def test_hours_that_are_none_are_refused_before_any_work(text, tmp_path, monkeypatch, capsys):
    with pytest.raises(InputError, match="no hours"):
        capture.asked_hours(text)
    monkeypatch.setattr(
        "sys.argv", ["tradewind", "capture", str(tmp_path / "drop"), f"--hours={text}"]
    )
    assert cli.main() == 2
    assert "for example --hours 0:6" in capsys.readouterr().err and not (tmp_path / "drop").exists()


def test_hours_are_told_as_a_first_one_and_the_one_after_the_last():
    assert capture.asked_hours("0:6") == (0, 6) and capture.asked_hours("0:1000") == (0, 1000)


def test_the_command_writes_the_hours_asked_for_and_prints_their_names(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(
        "sys.argv", ["tradewind", "capture", str(tmp_path / "drop"), "--hours", "0:1"]
    )
    assert cli.main() == 0
    written = tmp_path / "drop/20260115T060000Z.csv"
    assert capsys.readouterr().out == f"{written}\n" and [*written.parent.iterdir()] == [written]


def test_a_file_where_the_folder_should_be_is_told(tmp_path):
    (tmp_path / "drop").write_text("")
    with pytest.raises(InputError, match="into a folder"):
        capture.capture(PLAN, tmp_path / "drop", 0, 1)


def test_captures_are_not_acquired(tmp_path, monkeypatch, capsys):
    (tmp_path / "params.yaml").write_text(
        (ROOT / "params.yaml").read_text(encoding="utf-8"), encoding="utf-8"
    )
    (tmp_path / "stages").symlink_to(ROOT / "stages")
    monkeypatch.chdir(tmp_path)
    assert acquisition.main(["live", "captures"]) == 2
    assert "taken in as they arrive" in capsys.readouterr().err
    assert {path.name for path in tmp_path.iterdir()} == {"params.yaml", "stages"}

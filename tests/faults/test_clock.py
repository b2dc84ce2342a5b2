"""Clocks that jump and zones that are not UTC: results are bytes of data and code, order is by
number, durations are never negative (F19).

Zones with odd offsets and summer time; a clock that goes an hour back at every other look. The
ledger's order and the state of the captures are tested where they stand (tests/retraining).
"""

import datetime as dt
import json
import os
import subprocess
import sys
import zoneinfo

import lab
import pytest

from stages import code, files, records

ZONES = ("America/St_Johns", "Asia/Kathmandu", "Pacific/Chatham")
JUMPING = """import itertools, time
real, turn = time.time, itertools.cycle((0.0, -3600.0))
time.time = lambda: real() + next(turn)
"""


@pytest.mark.slow_fault
@pytest.mark.fault("F19")
@pytest.mark.parametrize("zone", ZONES)
def test_every_stage_gives_the_same_bytes_in_any_zone_under_a_jumping_clock(copy, tmp_path, zone):
    """From simulated winds with a start time to the page; all stages are run again, by their
    commands."""
    assert zoneinfo.ZoneInfo(zone).utcoffset(dt.datetime(2026, 1, 15, 6)) % dt.timedelta(hours=1)
    wanted = lab.made(copy)
    (tmp_path / "sitecustomize.py").write_text(JUMPING)
    for stage in lab.ORDER[:-1] if zone != ZONES[0] else lab.ORDER:
        if stage in ("validate", "evaluate", "tabulate") and zone == ZONES[2]:
            continue  # the slow ones in two zones
        command = [sys.executable, *lab.declared()[stage]["cmd"].split()[2:]]
        lab.sound(lab.call(copy, *command, TZ=zone, PYTHONPATH=str(tmp_path)))
    assert lab.made(copy) == wanted
    spans = [
        json.loads(line)["seconds"]
        for line in (copy / ".work/durations.jsonl").read_text().splitlines()
    ]
    assert len(spans) > len(lab.ORDER) and min(spans) >= 0


@pytest.mark.fault("F19")
def test_a_duration_is_monotonic_though_the_clock_jumps_back(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    now = iter(range(10**6, 0, -3600))
    monkeypatch.setattr("time.time", lambda: float(next(now)))
    with records.timed("stage", "cell"):
        pass
    assert 0 <= json.loads((tmp_path / ".work/durations.jsonl").read_text())["seconds"] < 5


@pytest.mark.fault("F19")
def test_equal_time_stamps_and_sizes_do_not_make_equal_files(tmp_path, monkeypatch):
    """A record and the code's digest follow the bytes; a newer time stamp alone changes nothing."""
    monkeypatch.chdir(tmp_path)
    for name, text in (("a", "1.0\n"), ("b", "2.0\n")):
        (tmp_path / name).write_text(text)
        os.utime(tmp_path / name, ns=(0, 0))
    assert records.describe(tmp_path / "a") != records.describe(tmp_path / "b")
    before = code.raw(["a"])
    os.utime(tmp_path / "a", (2e9, 2e9))
    assert code.raw(["a"]) == before
    (tmp_path / "a").write_text("2.0\n")
    os.utime(tmp_path / "a", (2e9, 2e9))
    assert code.raw(["a"]) != before and files.sha256(tmp_path / "a") == files.sha256(
        tmp_path / "b"
    )


@pytest.mark.fault("F19")
@pytest.mark.parametrize(
    "zone",
    [
        "Europe/Berlin",
        *(pytest.param(zone, marks=pytest.mark.slow_fault) for zone in ("America/New_York", "UTC")),
    ],
)
def test_the_schedule_fires_once_an_hour_through_both_changes_of_the_clock(zone):
    """The hours are UTC's, which knows no summer time, whatever zone the machine is in."""
    told = [
        line
        for name in ("schedule", "retrain", "server")
        for line in (lab.HOME / f"flows/{name}.py").read_text().splitlines()
        if "timezone" in line
    ]
    assert told and all("UTC" in line for line in told), told
    code = (
        "import asyncio, datetime as dt, json, zoneinfo\nfrom prefect.schedules import Cron\n"
        "from prefect.client.schemas.schedules import CronSchedule\n"
        "found = []\nfor day in ((2026, 3, 7), (2026, 3, 28), (2026, 10, 24), (2026, 10, 31)):\n"
        "    start = dt.datetime(*day, 12, tzinfo=dt.timezone.utc)\n"
        "    s = Cron('0 * * * *', timezone='UTC')\n"
        "    from prefect.server.schemas.schedules import CronSchedule as Served\n"
        "    dates = asyncio.run(Served(cron=s.cron, timezone=s.timezone).get_dates(n=30, "
        "start=start))\n"
        "    found.append([(b - a).total_seconds() for a, b in zip(dates, dates[1:])])\n"
        "print(json.dumps(found))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=lab.environment(TZ=zone, PREFECT_HOME=os.devnull + "-none"),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-800:]
    assert json.loads(done.stdout.splitlines()[-1]) == [[3600.0] * 29] * 4

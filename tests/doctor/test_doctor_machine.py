"""What the doctor finds in the environment: packages, interpreter, variables, disk, memory, GPU,
clock."""

import subprocess
import sys
import time
from collections import namedtuple

import pytest
from ailing import ROOT, configured, pretend, states, told, write

from stages.doctor import environment, machine, project
from stages.doctor.finding import FAIL, OK, WARN, Place

Usage = namedtuple("Usage", "total used free")


@pytest.mark.parametrize(
    "other, packages, pins, pairs, says",
    [
        ({}, OK, OK, OK, "all as listed"),
        ({"attrs": "1.0"}, WARN, OK, OK, "attrs 1.0 (not"),
        ({"attrs": None}, WARN, OK, OK, "not installed: attrs"),
        ({"polars": "1.9"}, WARN, FAIL, OK, "polars 1.9 (needs"),
        ({"torch": None}, WARN, FAIL, OK, "torch missing"),
        ({"fastapi": "0.163.0"}, WARN, FAIL, FAIL, "fastapi<0.151"),
        ({"sqlalchemy": "2.1.9"}, WARN, FAIL, FAIL, "sqlalchemy<2.1"),
        ({"prefect": "4.0", "fastapi": "0.163.0"}, WARN, FAIL, OK, "prefect 4.0"),
    ],
)
def test_packages_that_differ_are_missing_or_break_each_other_are_told(
    place, monkeypatch, other, packages, pins, pairs, says
):
    pretend(place, monkeypatch, **other)
    found = [environment.packages(place), environment.pins(place), environment.pairs(place)]
    assert [one.state for one in found] == [packages, pins, pairs] and says in told(found)


def test_a_version_of_another_build_is_the_same_version(monkeypatch):
    monkeypatch.setattr(environment.metadata, "version", lambda name: "2.13.0+cpu")
    assert environment.installed("torch") == "2.13.0"


def test_an_old_interpreter_and_another_folders_code_are_told(place, monkeypatch):
    monkeypatch.setattr(environment.platform, "python_version", lambda: "3.10.1")
    assert states(environment.python(place)) == {
        "python": FAIL,
        "code": WARN,
    }  # the tests run the real project's code, not this copy's
    monkeypatch.setattr(environment.platform, "python_version", lambda: "3.11.7")
    assert states(environment.python(Place(ROOT, {}))) == {"python": OK, "code": OK}


@pytest.mark.parametrize(
    "name, state",
    [
        ("TRADEWIND_DEVICE", OK),
        ("TRADEWIND_KERNELS", OK),
        ("TRADEWIND_SWEEP_WORKERS", OK),
        ("FAULT", WARN),
        ("TRADEWIND_FLOW", WARN),
        ("TRADEWIND_MIRROR", OK),
        ("EDITOR", OK),
    ],
)
def test_variables_are_named_without_their_values_and_perilous_ones_are_warned_of(
    place, name, state
):
    found = environment.variables(Place(place.root, {name: "value-of-it"}))
    assert (
        found.state == state
        and "value-of-it" not in told(found)
        and (name in found.found) == (name != "EDITOR")
    )


# --- machine


@pytest.mark.parametrize(
    "gib, expected",
    [
        (100, (OK, OK, OK)),
        (3, (WARN, WARN, OK)),
        (0.5, (FAIL, FAIL, WARN)),
        (0.1, (FAIL, FAIL, FAIL)),
    ],
)
def test_a_disk_that_fills_is_warned_of_before_it_fails(place, monkeypatch, gib, expected):
    monkeypatch.setattr(machine.shutil, "disk_usage", lambda path: Usage(0, 0, gib * machine.GIB))
    found = machine.disk(configured(place))
    assert tuple(one.state for one in found) == expected and all(
        f"{gib:.1f} GiB" in one.found for one in found
    )


def test_the_cache_that_the_configuration_names_is_the_one_looked_at(place, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("cache")
    write(place, ".dvc/config.local", f"[cache]\n    dir = {elsewhere}\n")
    assert (
        any(str(elsewhere) in one.found for one in machine.disk(place))
        and project.cache(place).state == OK
    )
    assert (
        project.cache(configured(place, "cache.dir=../dvc.yaml\n")).state == FAIL
    )  # a file stands there


@pytest.mark.parametrize("gib, state", [(8, OK), (2, WARN), (0.5, FAIL)])
def test_memory_is_judged_by_what_can_be_had(place, monkeypatch, gib, state):
    monkeypatch.setattr(machine, "available", lambda: gib * machine.GIB)
    assert machine.memory(place).state == state


@pytest.mark.parametrize(
    "torch, driver, answer, wanted, state, says",
    [
        (False, False, None, "", FAIL, "torch is not installed"),
        (True, False, None, "", OK, "none here"),
        (True, False, None, "cuda", FAIL, "TRADEWIND_DEVICE"),
        (True, True, (0, "2.13.0 NVIDIA X", ""), "", OK, "NVIDIA X"),
        (True, True, (0, "2.13.0+cpu False", ""), "", WARN, "cannot use it"),
        (True, True, (1, "", "Traceback\nImportError: libcudart"), "", WARN, "libcudart"),
    ],
)
def test_a_gpu_is_found_where_torch_can_use_it(
    place, monkeypatch, tmp_path, torch, driver, answer, wanted, state, says
):
    monkeypatch.setattr(machine, "find_spec", lambda name: object() if torch else None)
    monkeypatch.setattr(machine, "DRIVER", (tmp_path if driver else tmp_path / "none",))
    here = Place(place.root, {"TRADEWIND_DEVICE": wanted})
    if answer:
        here.answers[(sys.executable, "-c", machine.ASK_TORCH)] = subprocess.CompletedProcess(
            [], *answer
        )
    found = machine.gpu(here)
    assert found.state == state and says in told(found)


def test_a_clock_before_the_last_commit_is_warned_of_and_no_time_zone_is(place, monkeypatch):
    made = int(place.ask("git", "log", "-1", "--format=%ct").stdout)
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    assert machine.clock(place).state == OK
    monkeypatch.setattr(machine.time, "time", lambda: made - 3600.0)
    found = machine.clock(place)
    monkeypatch.undo()
    time.tzset()
    assert found.state == WARN and "3600 s before" in found.found

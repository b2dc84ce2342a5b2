"""A whole laboratory in a folder: the project's own code and commands, git and DVC, from simulated
winds to the report page.

The cheapest data set of the profile mini (gp_wind, 1,440 winds of a known law), two models that
learn nothing, the experiment wind_baselines. Built once a test session (about 30 s on one core) and
copied for every test. What is declared here is the cone of one table: code, acquire -> decode ->
validate -> prepare -> train -> evaluate -> tabulate -> page -> report.
"""

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from ruamel.yaml import YAML

HOME = Path(__file__).parents[2]
REPORTS = "reports/wind_baselines"
NUMBER = "wind_baselines/mini/gp_wind/persistence/rmse_component_kn"
MODELS = ("day_average", "persistence")
MADE = f"{REPORTS}/mini"
ORDER = (
    "code",
    "acquire",
    "decode",
    "validate",
    "prepare",
    *(f"train-{model}" for model in MODELS),
    "evaluate",
    "tabulate",
    "page",
    "report",
)


def _told(file: Path, stage: str, **words: str) -> dict:
    """A stage as the project declares it, its placeholders filled in; what it would read of
    other experiments and stages is left out."""
    stated = YAML(typ="safe", pure=True).load(file)["stages"][stage]
    text = json.dumps(stated.get("do", stated))
    for name, word in {
        "run.profile": "mini",
        "item.profile": "mini",
        "item.dataset": "gp_wind",
        "here": REPORTS,
        **words,
    }.items():
        text = text.replace("${" + name + "}", word)
    whole = json.loads(text)
    foreign = re.compile(
        rf"data/(?!mini|published|code)|data/mini/contexts|{MADE}/sweeps|reports/(?!wind_baselines/"
        r"(mini|companions))"
    )
    whole["deps"] = [path for path in whole["deps"] if not foreign.match(path)]
    made = [whole.pop(kind, []) for kind in ("metrics", "plots", "outs")]
    whole["outs"] = [out for outs in made for out in outs]
    return {key: whole[key] for key in ("cmd", "deps", "params", "outs") if key in whole}


def declared() -> dict[str, dict]:
    """The stages in ORDER: the project's own declarations, for one data set and two models."""
    spine, experiment = HOME / "dvc.yaml", HOME / REPORTS / "dvc.yaml"
    found = {
        stage: _told(spine, stage)
        for stage in ("code", "acquire", "decode", "validate", "prepare", "report")
    }
    found |= {stage: _told(experiment, stage) for stage in ("evaluate", "tabulate", "page")}
    found |= {
        f"train-{model}": _told(
            experiment, "plain", **{"item.model": model, "key": f"mini-gp_wind-{model}"}
        )
        for model in MODELS
    }
    return {stage: found[stage] for stage in ORDER}


def environment(**more: str) -> dict[str, str]:
    """What a command in the lab is given: no telemetry, one thread, this interpreter as
    `python`, no fault but the one asked for."""
    clean = {
        key: value
        for key, value in os.environ.items()
        if key not in ("FAULT", "PYTHONPATH") and not key.startswith("COV_")
    }
    path = os.pathsep.join((str(Path(sys.executable).parent), clean.get("PATH", "")))
    return (
        clean
        | {
            "PATH": path,
            "DVC_NO_ANALYTICS": "1",
            "DO_NOT_TRACK": "1",
            "GX_ANALYTICS_ENABLED": "false",
            "MPLBACKEND": "Agg",
            "OMP_NUM_THREADS": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
        }
        | more
    )


def call(folder: Path, *command: str, **more) -> subprocess.CompletedProcess:
    """A command in a process group of its own; what it said is in .stdout."""
    return subprocess.run(
        command,
        cwd=folder,
        env=environment(**more),
        start_new_session=True,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        timeout=300,
        check=False,
    )


def dvc(folder: Path, *words: str, **more) -> subprocess.CompletedProcess:
    """A dvc command in the lab."""
    return call(folder, sys.executable, "-m", "dvc", *words, **more)


def sound(done: subprocess.CompletedProcess) -> str:
    """What a command said that must have ended well."""
    assert done.returncode == 0, done.stdout
    return done.stdout


def commit(folder: Path) -> None:
    """Commit everything to git."""
    sound(call(folder, "git", "add", "-A"))
    sound(
        call(
            folder,
            "git",
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@example.org",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "all",
        )
    )


def settle(folder: Path) -> Path:
    """Code, parameters, declarations; nothing made yet. A smaller budget: two leads, a hundred
    resamples."""
    shutil.copytree(HOME / "stages", folder / "stages")  # with its compiled kernels
    for name in (
        "params.yaml",
        "constraints.txt",
        ".gitignore",
        ".dvcignore",
        f"{REPORTS}/cells.yaml",
        f"{REPORTS}/companions.csv",
        f"{REPORTS}/README.md",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(HOME / name, folder / name)
    shutil.copytree(HOME / "data/published", folder / "data/published")
    budget = folder / "stages/params/budgets/mini/winds.yaml"
    text, count = re.subn(
        r"(?m)^evaluation: .*$",
        "evaluation: {leads_min: [10, 15], bootstrap: 100}",
        budget.read_text(encoding="utf-8"),
    )
    assert count == 1
    budget.write_text(text, encoding="utf-8")
    (folder / "dvc.yaml").write_text(
        json.dumps({"stages": declared()}, indent=1), encoding="utf-8"
    )  # JSON is YAML
    (folder / REPORTS / "dvc.yaml").write_text(
        "stages: {}\n", encoding="utf-8"
    )  # the page asks it for the experiment's name
    sound(call(folder, "git", "init", "-q"))
    sound(dvc(folder, "init", "-q"))
    return folder


def build(folder: Path) -> Path:
    """The lab with all its results, in git."""
    settle(folder)
    sound(dvc(folder, "repro"))
    commit(folder)
    return folder


def shared(base: Path) -> Path:
    """The lab that all workers of a test session share, built by the first of them."""
    with (base / "lab.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (base / "lab-ready").exists():
            shutil.rmtree(base / "lab", ignore_errors=True)
            build(base / "lab")
            (base / "lab-ready").touch()
    return base / "lab"


def made(folder: Path) -> dict[str, str]:
    """SHA-256 of every file that the stages make, and of dvc.lock: what an undisturbed run and a
    disturbed one must agree in."""
    tops = (
        "data/mini",
        MADE,
        "reports/index.html",
        "reports/README.md",
        "reports/claims.html",
        "reports/grand.html",
        "dvc.lock",
    )
    files = [
        file
        for top in tops
        for file in (
            sorted((folder / top).rglob("*")) if (folder / top).is_dir() else [folder / top]
        )
    ]
    return {
        file.relative_to(folder).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in files
        if file.is_file() and file.name != ".gitignore"
    }


def outputs(stage: str) -> list[str]:
    """The outputs of a stage."""
    return [out if isinstance(out, str) else next(iter(out)) for out in declared()[stage]["outs"]]


def flip(file: Path, at: int | None = None) -> None:
    """One bit of a byte in the middle, in place, the time stamp as it was: what a disk does."""
    stat, content = file.stat(), bytearray(file.read_bytes())
    content[len(content) // 2 if at is None else at] ^= 1
    file.chmod(0o644)
    file.write_bytes(content)
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    file.chmod(stat.st_mode)


def until(what, seconds: float, told: str) -> None:
    """Wait until `what()` holds."""
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, f"not within {seconds} s: {told}"
        time.sleep(0.02)

"""A whole project in a folder, as small as can be: real git, real DVC, stages that write a few
bytes and real records.

Built once (`build`) and copied for every test. Stage modules have the real project's names and
command lines, so dvc.lock, cache and records have its form, and its places: the raw data's stage
stands in a dvc.yaml under data/, the experiments' under reports/. What they compute is arithmetic
on a few numbers. Two experiments rest on the same data.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from stages import records
from stages.audit import hashes
from stages.code import Project

HOME = Path(__file__).parents[2]
NUMBER = "wind_nowcast/mini/simulated/msa-shared-5k-s0/rmse_component_kn"
DATA, REPORTS = "data/mini", "reports/wind_nowcast/mini"
TABLE, EVALUATED = f"{REPORTS}/metrics.json", f"{REPORTS}/evaluated/simulated/metrics.json"
RAW_LOCK = "data/winds/dvc.lock"
RUN = f"{REPORTS}/runs/simulated/msa-shared-5k-s0"
EXPERIMENTS = {
    "wind_nowcast": ("knn", "msa-shared-5k-s0", "msa-shared-5k-s1"),
    "sensor_noise": ("knn",),
}
# What the small project has of the real one: these modules, with all that they import.
GROUND = ("stages.records", "stages.seeds", "stages.params", "stages.code.__main__")
GROUND = (*GROUND, "stages.tables.gather", "stages.arithmetic.kernels")
MODULES = {
    "acquire": "acquisition.acquire",
    "decode": "preparation.decode",
    "validate": "validation.validate",
    "prepare": "preparation.prepare",
    "train": "training.train",
    "evaluate": "evaluation.evaluate",
    "tabulate": "tabulation.tabulate",
}

STAGES = """
import json, os, pathlib, re, sys
import numpy as np
from safetensors.numpy import load_file, save_file
from stages import code, files, records
from stages.params import read_yaml
from stages.tables.gather import over_seeds

def main(stage, module):
    globals()[stage](*sys.argv[1:])

def finish(stage, module, inputs, made, params, seed=None, cell=None, dataset="simulated", \
experiment=None):
    outputs = {p.as_posix(): p for p in records.files_in(made)}
    record = records.make(stage, cell or dataset or "", inputs=inputs, outputs=outputs, \
params=params, seed=seed, threads=1,
                          code=code.recorded([f"stages.{module}"]))
    files.write_json(records.location(stage, "mini", dataset, experiment=experiment, cell=cell), \
record)

def acquire(*names):
    home = pathlib.Path("data/mini/raw/simulated"); home.mkdir(parents=True)
    (home / "truth.parquet").write_bytes(b"only the simulator reads this")
    listed = {"truth.parquet": {**records.describe(home / "truth.parquet"), "url": None, \
"licence": "MIT", "source": "simulated"}}
    for hour in range(2):
        file = home / f"frames_{hour:02}.csv"
        file.write_text("".join(f"{i}.000,{i * 7919:014X}\\n" for i in range(hour * 5, hour * 5 + \
5)))
        listed[file.name] = {**records.describe(file), "url": None, "licence": "MIT", "source": \
"simulated"}
    files.write_json(home / "manifest.json", {"dataset": "simulated", "entry": "frames", "files": \
listed})
    finish("acquire", "acquisition.acquire", [], [home], {"datasets": {"simulated": {"hours": 9}}})

def decode(*names):
    raw, home = pathlib.Path("data/mini/raw/simulated"), \
pathlib.Path("data/mini/decoded/simulated"); home.mkdir(parents=True)
    frames = sorted(raw.glob("frames_*.csv"))
    (home / "winds.parquet").write_bytes(b"".join(f.read_bytes() for f in frames)[::2])
    files.write_json(home / "counts.json", {"read": 10, "kept": 10, "dropped": {}})
    finish("decode", "preparation.decode", [*frames, raw / "manifest.json"], [home], \
{"roll_max_deg": 5.0})

def validate(*names):
    home = pathlib.Path("data/mini/validated/simulated.json")
    files.write_json(home, {"success": True, "rules": 3})
    finish("validate", "validation.validate", ["data/mini/decoded/simulated"], [home], {})

def prepare(*names):
    home = pathlib.Path("data/mini/prepared/simulated"); home.mkdir(parents=True)
    (home / \
"rows.parquet").write_bytes(pathlib.Path("data/mini/decoded/simulated/winds.parquet").read_bytes()[:40])
    files.write_json(home / "prepared.json", {"lead_s": 1800})
    finish("prepare", "preparation.prepare", ["data/mini/decoded/simulated", \
"data/mini/validated/simulated.json"], [home],
           {"lead_s": 1800.0, "split": {"train": [[1860, 18000]], "val": [[21660, 24000]], "test": \
[[27660, 32400]]}})

def train(experiment, profile, dataset, model, *options):
    given = dict(zip(options[::2], options[1::2]))
    cell = f"{model}-{given['--arm']}-{given['--size']}-s{given['--seed']}" if given else model
    home = pathlib.Path("reports") / experiment / "mini/runs/simulated" / cell; \
home.mkdir(parents=True)
    seed = int(given.get("--seed", 0))
    drawn = np.random.default_rng(seed + 10 * sum(map(ord, \
model))).normal(size=8).astype(np.float32) + \
len(pathlib.Path("data/mini/prepared/simulated/rows.parquet").read_bytes())
    save_file({"w": drawn}, home / "weights.safetensors")
    files.write_json(home / "history.json", {"steps": 3})
    finish("train", "training.train", ["data/mini/prepared/simulated"], [home], {"steps": 1500, \
"model": \
model}, seed, cell, experiment=experiment)

def entry(run):
    # as TOY says: another value, so much added, noise for each thread
    toy = json.loads(os.environ.get("TOY", "{}"))
    threads = read_yaml(pathlib.Path("params.yaml"))["training"]["threads"]
    value = toy.get("value", float(load_file(run / "weights.safetensors")["w"].mean())) + \
toy.get("by", 0.0) + toy.get("noise", 0.0) * (threads - 0.5)
    number = lambda x: {"value": x, "unit": "kn", "low": x - 1, "high": x + 1, "n": 10}
    return {"metrics": {"rmse_component_kn": number(value), "nse": {"value": 1 / value, "unit": \
"1", "n": 10}}, "by_altitude": {"low": {"nse": number(2 * value)}}}

def evaluate(experiment, profile="mini", dataset="simulated", *options):
    base = pathlib.Path("reports") / experiment / "mini"
    if options:
        _, cell, _, out = options
        return files.write_json(pathlib.Path(out), entry(base / "runs/simulated" / cell))
    home = base / "evaluated/simulated"; home.mkdir(parents=True)
    runs = sorted((base / "runs/simulated").iterdir())
    runs = [run for run in runs if run.is_dir()]
    for run in runs:
        (home / f"predictions-{run.name}.parquet").write_bytes((run / \
"weights.safetensors").read_bytes()[-16:])
        (home / f"field-{run.name}.parquet").write_bytes(b"field " + run.name.encode())
    (home / "slices.parquet").write_bytes(b"slices")
    files.write_json(home / "metrics.json", {"cells": {run.name: entry(run) for run in runs}})
    finish("evaluate", "evaluation.evaluate", [*runs, "data/mini/prepared/simulated"], [home], \
{"bootstrap": 1000}, experiment=experiment)

def tabulate(experiment, profile="mini", *options):
    base = pathlib.Path("reports") / experiment / "mini"
    if options:
        return pathlib.Path(options[1]).write_text("a table\\n")
    cells = {f"simulated/{name}": content for name, content in files.read_json(base / \
"evaluated/simulated/metrics.json")["cells"].items()}
    files.write_json(base / "metrics.json", {"experiment": experiment, "profile": "mini", "cells": \
cells, "arms": over_seeds(cells)})
    (base / "table.md").write_text("a table\\n")
    files.write_json(base / "claims.json", {"claims": [{"holds": True}]})
    (base / "figures").mkdir()
    for name in ("by_lead.svg", "map.png"):
        (base / "figures" / name).write_bytes(b"a figure, " + name.encode())
    finish("tabulate", "tabulation.tabulate", [base / "evaluated", "data/mini/prepared", \
base.parent / \
"companions.csv", "data/published"],
           [base / name for name in ("metrics.json", "table.md", "claims.json", "figures")], {}, \
dataset=None, experiment=experiment)
"""


PARAMS = """# A whole, valid params.yaml, as small as the schema allows.
profiles:
  mini: &mini
    profile: mini
    datasets: [simulated]
    acquired: [simulated]
    wind: [simulated]
    nowcast: [simulated]
    baselines: [simulated]
    optimum: []
    sizes: [5k]
    seeds: [0, 1]
    arm_seeds: [0]
    prepare:
      simulated:
        slice_s: 60
        lead_s: 1800
        embargo_s: 1800
        split: {train: [[1860, 18000]], val: [[21660, 24000]], test: [[27660, 32400]]}
    training: {steps: 1500, validate_every: 250, patience: 4}
    evaluation: {leads_min: [5, 30], bootstrap: 1000}
  other: &other
    {profile: other, datasets: [], acquired: [], wind: [], nowcast: [], baselines: [], optimum: \
[], sizes: [], seeds: [], arm_seeds: [], prepare: {},
     training: {steps: 1, validate_every: 1, patience: 1},
     evaluation: {leads_min: [5], bootstrap: 100}}
run: *mini
decode:
  declination: true
  roll_max_deg: 5.0
  state_age_max_s: 6.0
  position_pair_max_s: 10.0
  tas_difference_max_kt: 20.0
  track_difference_max_deg: 10.0
  groundspeed_difference_max_kt: 20.0
  altitude_difference_max_ft: 500.0
  wind_max_m_s: 128.61
datasets:
  simulated:
    entry: frames
    kind: simulate
    simulate: {seed: 20260, start: "2026-01-15T06:00:00Z", hours: 9, aircraft: 22, update_s: 4.0, \
south_west: [44.0, 4.0], extent_km: [500.0, 600.0],
               altitude_m: [4000.0, 12000.0], dropout: 0.08, bit_error: 0.004, airspeed_noise_kt: \
1.0, heading_noise_deg: 0.3}
models:
  knn: {arms: {plain: {}}}
contexts: {method: linear, places: 8, horizontal_km: 60.0, vertical_km: 0.6, time_min: 60.0}
sweeps: {}
training: {seed: 0, learning_rate: 3.0e-4, clip: 4.0, threads: 1}
retraining: {cron: "0 * * * *", drop: drop, profile: mini, dataset: simulated, challenger: knn, \
first_against: knn, margin_kn: 0.0,
  slices_least: 20, drift: {}, commit: false}
"""


def project_files() -> dict[str, str]:
    """Path -> text of everything but the copied ground floor."""
    outs = (
        "outs: [data/mini/{0}/simulated, {{data/mini/records/simulated.{1}.json: {{cache: "
        "false}}}}]"
    )
    lists = "data/code: {cache: false}"
    # declared in the root, and under data
    spine, raw = ["stages:", "  code:", "    cmd: exec python -m stages.code"], ["stages:"]
    spine += ["    deps: [stages]", f"    outs: [{lists}]"]
    for stage, place, deps, keys in (
        ("acquire", "raw", [], ["datasets.simulated"]),
        ("decode", "decoded", ["data/mini/raw/simulated"], ["decode"]),
        ("validate", "validated", ["data/mini/decoded/simulated"], []),
        (
            "prepare",
            "prepared",
            ["data/mini/decoded/simulated", "data/mini/validated/simulated.json"],
            ["profiles.mini.prepare.simulated"],
        ),
    ):
        made = outs.format(place, stage).replace(
            "data/mini/validated/simulated,",
            "{data/mini/validated/simulated.json: {cache: false}},",
        )
        lines, root = (raw, "../..") if stage == "acquire" else (spine, ".")
        lines += [
            f"  {stage}:",
            f"    wdir: {root}",
            f"    cmd: exec python -m stages.{MODULES[stage]} mini simulated",
            f"    deps: {json.dumps([*deps, f'data/code/{MODULES[stage]}.json'])}",
            f"    params: {json.dumps(keys)}",
            f"    {made}",
        ]
    texts = {
        "dvc.yaml": "\n".join(spine) + "\n",
        RAW_LOCK.replace(".lock", ".yaml"): "\n".join(raw) + "\n",
        "stages/fake.py": STAGES,
        ".gitignore": ".work/\n__pycache__/\n",
        ".dvcignore": "__pycache__\n",
        "data/published/thesis_table_1_2.csv": "table,mean\nthesis 1.2,8.1\n",
        "data/mini/prepared/other/rows.parquet": "of no record",
        ".dvc/config": "[core]\n    analytics = false\n    check_update = false\n",
    }
    for stage, module in MODULES.items():
        package, name = module.split(".")
        texts[f"stages/{package}/__init__.py"] = f'NAME = "{package}"\n'
        texts[f"stages/{package}/{name}.py"] = (
            f"from stages import fake\n\nfake.main({stage!r}, {module!r})\n"
        )
    for experiment, cells in EXPERIMENTS.items():
        texts[f"reports/{experiment}/dvc.yaml"] = experiment_yaml(experiment, cells)
        texts[f"reports/{experiment}/companions.csv"] = "arm,table\nknn,thesis 1.2\n"
    return texts


def experiment_yaml(experiment: str, cells: tuple[str, ...]) -> str:
    """An experiment's declaration, told from the project's root by `wdir` as the real one is."""
    here, lines = f"reports/{experiment}/mini", ["stages:"]

    def stage(
        name: str, cmd: str, deps: list[str], keys: list[str], cached: list[str], kept: list[str]
    ) -> None:
        outs = json.dumps([*cached, *({path: {"cache": False}} for path in kept)])
        lines.extend(
            [
                f"  {name}:",
                "    wdir: ../..",
                f"    cmd: exec python -m stages.{cmd}",
                f"    deps: {json.dumps(deps)}",
                f"    params: {json.dumps(keys)}",
                f"    outs: {outs}",
            ]
        )

    for cell in cells:
        model, *rest = cell.split("-")
        options = f" --arm {rest[0]} --size {rest[1]} --seed {rest[2][1:]}" if rest else ""
        stage(
            f"train-{cell}",
            f"training.train {experiment} mini simulated {model}{options}",
            ["data/mini/prepared/simulated", "data/code/training.train.json"],
            ["profiles.mini.training", "training"],
            [f"{here}/runs/simulated/{cell}"],
            [f"{here}/records/simulated.{cell}.train.json"],
        )
    stage(
        "evaluate",
        f"evaluation.evaluate {experiment} mini simulated",
        [
            f"{here}/runs/simulated",
            "data/mini/prepared/simulated",
            "data/code/evaluation.evaluate.json",
        ],
        ["profiles.mini.evaluation"],
        [f"{here}/evaluated/simulated"],
        [f"{here}/records/simulated.evaluate.json"],
    )
    stage(
        "tabulate",
        f"tabulation.tabulate {experiment} mini",
        [
            f"{here}/evaluated",
            "data/mini/prepared",
            f"reports/{experiment}/companions.csv",
            "data/published",
            "data/code/tabulation.tabulate.json",
        ],
        [],
        [],
        [
            *(f"{here}/{name}" for name in ("metrics.json", "table.md", "claims.json", "figures")),
            f"{here}/records/tabulate.json",
        ],
    )
    return "\n".join(lines) + "\n"


def build(root: Path, without: tuple[str, ...] = ()) -> Path:
    """Write (but for the files in `without`), run, `dvc commit` and git-commit the project."""
    for name in sorted(Project(HOME).reached(GROUND)):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(HOME / name, root / name)
    (root / "params.yaml").write_text(PARAMS)
    (root / "constraints.txt").write_text("numpy==2.4.6\n")
    for name, text in project_files().items():
        if name in without:
            continue
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    calls = ["acquire()", "decode()", "validate()", "prepare()"]
    for experiment, cells in EXPERIMENTS.items():
        for cell in cells:
            model, *rest = cell.split("-")
            given = ["--arm", rest[0], "--size", rest[1], "--seed", rest[2][1:]] if rest else []
            calls.append(f"train(*{[experiment, 'mini', 'simulated', model, *given]!r})")
        calls += [f"evaluate({experiment!r})", f"tabulate({experiment!r})"]
    run(root, sys.executable, "-m", "stages.code")
    run(root, sys.executable, "-c", "from stages.fake import *; " + "; ".join(calls))
    run(root, "git", "init", "-q")
    run(root, sys.executable, "-m", "dvc", "commit", "-q", "-f")
    commit(root)
    return root


def run(root: Path, *command: str) -> None:
    """A command in the project; its output is shown when it fails."""
    environment = {
        **os.environ,
        "PYTHONDONTWRITEBYTECODE": "1",
        "DVC_NO_ANALYTICS": "1",
        "PYTHONPATH": str(root),
        "GIT_CONFIG_GLOBAL": os.devnull,
    }
    done = subprocess.run(
        command, cwd=root, capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def commit(root: Path) -> None:
    """Commit everything to git; nothing of a run that is nobody's to commit
    (foreign_project.py)."""
    if (root / ".git/uncommitted").exists():
        return
    run(root, "git", "add", "-A")
    run(
        root,
        "git",
        "-c",
        "user.name=t",
        "-c",
        "user.email=t@example.org",
        "commit",
        "-q",
        "-m",
        "all",
    )


@pytest.fixture(scope="session")
def template(tmp_path_factory):
    """The project, built once."""
    return build(tmp_path_factory.mktemp("audit"))


@pytest.fixture
def project(template, tmp_path):
    """A copy of the project for one test."""
    return Path(shutil.copytree(template, tmp_path / "project", symlinks=True))


@pytest.fixture
def evaluation(monkeypatch):
    """What evaluations made again say: `value` in place of a number, `by` added to it, `noise`
    for each thread."""

    def says(**toy: float) -> None:
        monkeypatch.setenv("TOY", json.dumps(toy))

    return says


def edit(file: Path, old: str, new: str) -> None:
    """Replace text that must be there."""
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))


def flip(file: Path, at: int = -3) -> None:
    """One bit of one byte, in place, the time stamp as it was."""
    stat, content = file.stat(), bytearray(file.read_bytes())
    content[at] ^= 1
    file.chmod(0o644)
    file.write_bytes(content)
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    file.chmod(stat.st_mode)


def about(found, path: str) -> str:
    """All that a finding says of a file."""
    return " | ".join(problem.text for problem in found.problems if problem.path == path)


def number_of(project: Path, name: str = "rmse_component_kn") -> float:
    """The published value of NUMBER's cell."""
    return json.loads((project / TABLE).read_text())["cells"]["simulated/msa-shared-5k-s0"][
        "metrics"
    ][name]["value"]


def forge(project: Path) -> None:
    """What a careful forger does: make every record, lock, cache object and commit agree with
    the files as they now are."""
    for pattern in ("data/*/records/*.json", "reports/*/*/records/*.json"):
        for file in project.glob(pattern):
            record = json.loads(file.read_text())
            for side in ("inputs", "outputs"):
                record[side] = {path: records.describe(project / path) for path in record[side]}
            file.write_text(json.dumps(record))
    run(project, sys.executable, "-m", "dvc", "commit", "-q", "-f")
    commit(project)


def agree(project: Path) -> None:
    """As `forge`, without DVC and its seconds: records, the locks' MD5s, cache objects and the
    commit are those of the files as they are.

    What the lock says of parameters stays.
    """
    for pattern in ("data/*/records/*.json", "reports/*/*/records/*.json"):
        for file in project.glob(pattern):
            record = json.loads(file.read_text())
            for side in ("inputs", "outputs"):
                record[side] = {path: records.describe(project / path) for path in record[side]}
            file.write_text(json.dumps(record))
    relock(project)


def relock(project: Path) -> None:
    """The locks' MD5s, cache objects and the commit made to agree with the files as they are;
    records stay."""
    contents, yaml = hashes.Bytes(project), YAML(typ="safe")
    for lock in (project / "dvc.lock", project / RAW_LOCK, *project.glob("reports/*/dvc.lock")):
        content = yaml.load(lock.read_text())
        for stage in content["stages"].values():
            for item in (*stage.get("deps", ()), *stage.get("outs", ())):
                item["md5"] = shelve(project, contents, item["path"])
        with lock.open("w") as stream:
            yaml.dump(content, stream)
    commit(project)


def shelve(project: Path, contents: hashes.Bytes, path: str) -> str:
    """The MD5 by which DVC names a file or folder as it is, its bytes put into the cache under
    it."""

    def keep(md5: str, content: bytes) -> str:
        place = hashes.Cache(project).path(md5)
        if not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        return md5

    if not (project / path).is_dir():
        return keep(contents.md5(path), (project / path).read_bytes())
    entries = contents.manifest(path)
    for entry in entries:
        keep(entry["md5"], (project / path / entry["relpath"]).read_bytes())
    return keep(hashes.manifest_md5(entries), json.dumps(entries, sort_keys=True).encode())

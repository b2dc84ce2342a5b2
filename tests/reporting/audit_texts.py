"""The files of the small project that the audit is tried on: parameters, declarations, stages
whose arithmetic is on a few numbers."""

import json

COMPARED = "\n    meta: {agree: stages.evaluation.agree}"
RAW_LOCK = "data/winds/dvc.lock"
EXPERIMENTS = {
    "wind_nowcast": ("knn", "msa-shared-5k-s0", "msa-shared-5k-s1"),
    "sensor_noise": ("knn",),
}
MODULES = {
    "acquire": "acquisition.acquire",
    "decode": "preparation.decode",
    "validate": "validation.validate",
    "prepare": "preparation.prepare",
    "train": "training.train",
    "evaluate": "evaluation.evaluate",
    "tabulate": "tabulation.tabulate",
    "report": "reporting.report",
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
    record = records.make(stage, cell or dataset or f"{experiment}/mini", inputs=inputs, \
outputs=outputs, params=params, seed=seed, threads=1,
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
    home, read = pathlib.Path("data/mini/validated/simulated.json"), "data/mini/decoded/simulated"
    rule = {"name": "rows.few", "severity": "warning", "limit": "at least 20", "observed": 10.0}
    files.write_json(home, {"success": True, "dataset": "simulated", "profile": "mini", \
"internal_errors": [],
           "critical_failed": [], "warnings": ["rows.few"], "expectations": [rule | \
{"success": False},
           rule | {"severity": "critical", "limit": "at least 1", "success": True}],
           "judged": {p.as_posix(): records.describe(p)["sha256"] for p in \
records.files_in([read])}})
    finish("validate", "validation.validate", ["data/mini/decoded/simulated"], [home], {})

def prepare(*names):
    home = pathlib.Path("data/mini/prepared/simulated"); home.mkdir(parents=True)
    (home / \
"rows.parquet").write_bytes(pathlib.Path(\
"data/mini/decoded/simulated/winds.parquet").read_bytes()[:40])
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
    # as the file TOY says: another value, so much added, noise for each thread
    file = pathlib.Path(os.environ.get("TOY", "toy.json"))
    toy = json.loads(file.read_text()) if file.is_file() else {}
    threads = read_yaml(pathlib.Path("params.yaml"))["training"]["threads"]
    value = toy.get("value", float(load_file(run / "weights.safetensors")["w"].mean())) + \
toy.get("by", 0.0) + toy.get("noise", 0.0) * (threads - 0.5)
    rows = pathlib.Path("data/mini/prepared/simulated/rows.parquet")
    n = min(10, len(rows.read_bytes()) // 4)
    number = lambda x: {"value": x, "unit": "kn", "low": x - 1, "high": x + 1, "n": n}
    return {"metrics": {"rmse_component_kn": number(value), "nse": {"value": 1 / value, "unit": \
"1", "n": n}}, "by_altitude": {"low": {"nse": number(2 * value)}}}

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

def agree(*words):
    slices = [pathlib.Path(place, "slices.parquet") for place in words[:-2]]
    told = [[one.as_posix(), "not the errors of metrics.json"] for one in slices
            if one.read_bytes() != b"slices"]
    files.write_json(pathlib.Path(words[-1]), told)

def report(*names):
    table = pathlib.Path("reports/sensor_noise/mini/table.md").read_text()
    files.write_json(pathlib.Path("reports/index.html"), ["a page", table])
"""


PARAMS = """# A whole, valid params.yaml, as small as the schema allows.
profiles:
  mini: &mini
    profile: mini
    datasets: [simulated]
    acquired: [simulated]
    wind: [simulated]
    prepare:
      simulated:
        slice_s: 60
        lead_s: 1800
        embargo_s: 1800
        split: {train: [[1860, 18000]], val: [[21660, 24000]], test: [[27660, 32400]]}
    training: {steps: 1500, validate_every: 250, patience: 4}
    evaluation: {leads_min: [5, 30], bootstrap: 1000}
  other: &other
    {profile: other, datasets: [], acquired: [], wind: [], prepare: {},
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
retraining: {cron: "0 * * * *", drop: drop, profile: mini, dataset: simulated, \
challengers: [wind_nowcast/knn], first_against: wind_nowcast/knn, margin_kn: 0.0,
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
    spine += ["  report:", "    cmd: exec python -m stages.reporting.report"]
    spine += ["    deps: [reports/sensor_noise/mini/table.md, data/code/reporting.report.json]"]
    spine += ["    outs: [{reports/index.html: {cache: false}}]"]
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
    texts["stages/evaluation/agree.py"] = (
        "import sys\nfrom stages import fake\n\nfake.agree(*sys.argv[1:])\n"
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
                f"    outs: {outs}" + COMPARED * (name == "evaluate"),
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

"""What the real evaluation of sequences writes is tabulated and drawn."""

from pathlib import Path

import orders_project
import stage_runs
import torch
from orders_project import EXPERIMENT
from results_project import PROFILE

from stages import files
from stages.params.orders import OrderEvaluation
from stages.scores import shell
from stages.sequences import tabulate
from stages.sequences import tokens as sequences
from stages.sequences.evaluation import measure
from stages.sequences.evaluation.data import Settings
from stages.sequences.models import build
from stages.training import store

HOME = Path("reports", EXPERIMENT, PROFILE)
SIZE = {"width": 16, "keys": 8, "hidden": 16, "heads": 2, "blocks": 1}


def prepared(folder: Path, dataset: str, kind: str, tokens: torch.Tensor, vocabulary: int) -> None:
    """Twelve sequences: four to train on, two to validate, six to test."""
    folder.mkdir(parents=True)
    ones = torch.tensor([0, 0, 0, 0, 1, 1, 2, 2, 2, 2, 2, 2]).numpy()
    sequences.write(
        sequences.Sequences(
            kind,
            tokens,
            ones,
            ones,
            ones,
            ("a", "b", "c"),
            vocabulary,
            orders_project.PROMPTS[dataset],
            orders_project.LAWS[dataset],
        ),
        folder,
        {},
    )


def trained(run: Path, order: str, vocabulary: int, length: int) -> None:
    """An untrained cell as training writes it."""
    run.mkdir(parents=True)
    meta = {
        "model": "sigma_gpt",
        "arm": order,
        "size": "tiny",
        "seed": 0,
        "arguments": SIZE,
        "order": order,
        "vocabulary": vocabulary,
        "length": length,
    }
    (run / "weights.safetensors").write_bytes(
        store.dump(build("sigma_gpt", None, SIZE, vocabulary, length), meta)
    )
    files.write_json(
        run / "history.json", {"val": [{"step": step, "loss": 2 / step} for step in (1, 2, 3)]}
    )


def test_what_the_real_evaluation_writes_is_tabulated(tmp_path, monkeypatch):
    torch.set_num_threads(1)
    monkeypatch.setattr("stages.scores.pool.os.sched_getaffinity", lambda pid: {0})
    monkeypatch.chdir(tmp_path)
    orders_project.build(tmp_path, ())
    plan = OrderEvaluation(
        samples=6, batch=30, orders=(1, 5), diffusion=(1, 2), posteriors=3, bootstrap=50
    )
    for dataset, kind, tokens, vocabulary in (
        ("mazes", "maze", orders_project.mazes(12), 5),
        ("climbs", "climb", orders_project.flights(12), 403),
    ):
        folder = tmp_path / f"data/{PROFILE}/prepared/{dataset}"
        home = HOME / "runs" / dataset
        prepared(folder, dataset, kind, tokens, vocabulary)
        for order in ("left_to_right", "random"):
            run = tmp_path / home / f"sigma_gpt-{order}-tiny-s0"
            trained(run, order, vocabulary, tokens.shape[1])
        cells = shell.trained(home)
        measure.evaluate(cells, folder, HOME / "evaluated" / dataset, Settings(plan, seed=0))
    stage_runs.tabulate(tabulate, EXPERIMENT, PROFILE)
    text = (HOME / "table.md").read_text()
    names = {file.name for file in (HOME / "figures").iterdir()}
    assert (
        "| constant rate |" in text
        and "table D.1" in text
        and "exact ones" in text
        and "table 4.3" in text
    )
    assert {"mazes-mazes.png", "mazes-strip.png", "climbs-climbs.png"} <= names

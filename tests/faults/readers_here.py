"""Every place where bytes from a disk become data: the reader, a valid file for it, and what the
reader needs beside it.

A reader is a function of a folder in which one file (`name`) is spoilt and the others are sound.
Valid files are made by the project's own writers, as small as they can be, so that a thousand
spoilt ones are read in seconds.
"""

import gzip
import io
import json
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import torch
from safetensors.torch import save

from stages import arrays, files, params
from stages.acquisition import archive
from stages.audit import chain, hashes
from stages.errors import DataError
from stages.fields.models import build
from stages.fields.problems.darcy import read as darcy
from stages.fields.sets import PreparedSets
from stages.params import reading
from stages.sequences import evaluate as sampled
from stages.sequences import models as orders
from stages.sequences.batches import Prepared as Sequences
from stages.training import store
from stages.training.checkpoint import Checkpoints
from stages.winds import prepare
from stages.winds.contexts import cache
from stages.winds.decoding import transform as decode
from stages.winds.decoding import truth, winds
from stages.winds.modes import frames
from stages.winds.nowcast import nowcast
from stages.winds.pairs import Pairs
from stages.winds.retraining import compare, intake, ledger

sys.path[:0] = [str(Path(__file__).parents[1] / name) for name in ("training", "reporting")]
import toy_sky  # noqa: E402 (after the path)
from audit_project import PARAMS  # noqa: E402 (after the path)


@dataclass(frozen=True)
class Reader:
    """`name` is the file that is spoilt, `make` fills a folder with valid files, `read` reads
    them."""

    name: str
    make: Callable[[Path], None]
    read: Callable[[Path], object]


def texts(**contents: str | bytes) -> Callable[[Path], None]:
    """A maker of small files; `__` in a name is a dot, `___` a slash."""

    def make(folder: Path) -> None:
        for name, content in contents.items():
            path = folder / name.replace("___", "/").replace("__", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)

    return make


def _prepared(folder: Path) -> None:
    """Prepared winds, and the contexts computed from them."""
    table = toy_sky.columns(12, 4)
    files.write_json(folder / "prepared.json", toy_sky.meta(table, 12))
    pl.DataFrame(table).write_parquet(folder / "rows.parquet")
    pairs = Pairs.open(folder)
    cache.compute(pairs, toy_sky.NEARBY, folder / "work", folder / "contexts")


def _winds(folder: Path) -> None:
    """Decoded winds and the gate's word on them."""
    table = toy_sky.columns(12, 4)
    rows = winds.conform(
        pl.DataFrame(
            {
                "ts_s": table["t_s"],
                "lat_deg": table["lat_deg"],
                "lon_deg": table["lon_deg"],
                "alt_ft": table["alt_ft"],
                "u_m_s": table["u_m_s"],
                "v_m_s": table["v_m_s"],
                "icao": ["4B1001"] * len(table["t_s"]),
                "file": ["a.csv"] * len(table["t_s"]),
            }
        )
    )
    rows.write_parquet(folder / "winds.parquet")
    files.write_json(
        folder / "gate.json",
        {
            "success": True,
            "judged": {
                (folder / "winds.parquet").as_posix(): files.sha256(folder / "winds.parquet")
            },
        },
    )


def _sets(folder: Path) -> None:
    """Prepared sets of points, and prepared sequences."""

    def draw(*shape):
        return torch.rand(*shape, generator=torch.Generator().manual_seed(0))

    tensors = {
        "context_x": draw(4, 3, 2),
        "context_y": draw(4, 3, 1),
        "target_x": draw(4, 2, 2),
        "target_y": draw(4, 2, 1),
        "split": torch.tensor([0, 0, 1, 2]),
        "group": torch.arange(4),
    }
    (folder / "sets.safetensors").write_bytes(save(tensors))
    files.write_json(folder / "sets.json", {"scaler": {"o_std": [1.0]}, "loss": "mse"})
    (folder / "sequences.safetensors").write_bytes(
        save({"tokens": torch.zeros(4, 5, dtype=torch.int32), "split": torch.tensor([0, 0, 1, 2])})
    )
    files.write_json(
        folder / "sequences.json",
        {"length": 5, "vocabulary": 3, "law": {}, "names": {"tokens": ["a", "b", "c"]}},
    )


def _field(folder: Path) -> None:
    """A trained field model."""
    torch.manual_seed(0)
    told = {
        "model": "msa",
        "arm": "shared",
        "size": "5k",
        "seed": 0,
        "x_dim": 3,
        "i_dim": 2,
        "o_dim": 2,
        "arguments": {"encoder": "shared", "width": 4, "heads": 1, "layers": 1},
        "prepared": {"scaler": {}, "slice_s": 60, "lead_s": 60, "area": {}},
    }
    (folder / "weights.safetensors").write_bytes(store.dump(build("msa", told["arguments"]), told))


def _order(folder: Path) -> None:
    """A trained model of sequences."""
    torch.manual_seed(0)
    size = {"width": 8, "heads": 2, "blocks": 1, "keys": 4, "hidden": 8}
    told = {
        "model": "sigma_gpt",
        "arm": "random",
        "size": "5k",
        "seed": 0,
        "arguments": size,
        "vocabulary": 3,
        "length": 5,
        "order": "random",
    }
    model = orders.build("sigma_gpt", None, size, 3, 5)
    (folder / "weights.safetensors").write_bytes(
        save(dict(model.state_dict()), {store.ENTRY: json.dumps(told)})
    )


DECODE = params.Decode(**reading.read_yaml(Path(__file__).parents[2] / "params.yaml")["decode"])
STATE = {"model.w": torch.ones(3), "random.cpu": torch.zeros(8, dtype=torch.uint8)}


def _archives(folder: Path) -> None:
    """A tar.gz, a zip and an archive of tensors as PyTorch writes it."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as tar:
        info = tarfile.TarInfo("a.csv")
        info.size = 6
        tar.addfile(info, io.BytesIO(b"1,2\n3\n"))
    (folder / "a.tar.gz").write_bytes(gzip.compress(plain.getvalue(), mtime=0))
    with zipfile.ZipFile(folder / "a.zip", "w") as pack:
        pack.writestr("a.csv", "1,2\n3\n")
    torch.save({"x": torch.ones(2, 4, 4) > 0, "y": torch.ones(2, 4, 4)}, folder / "a.pt")


def _ledger(folder: Path) -> None:
    """Two lines."""
    lines: list[dict] = []
    for number in (1, 2):
        entry = {
            "kind": "promoted",
            "case": str(number),
            "number": number,
            "previous": ledger.hashed(ledger.line_of(lines[-1])) if lines else "",
            "time": "2026-01-01T00:00:00Z",
            "after": "0" * 64,
        }
        lines.append({**entry, "digest": ledger.digest(entry)})
    (folder / "ledger.jsonl").write_text("".join(ledger.line_of(line) + "\n" for line in lines))


def _record(folder: Path) -> None:
    """A run record and a lock with one stage, where the audit looks for them."""
    (folder / "data/mini/records").mkdir(parents=True)
    files.write_json(
        folder / "data/mini/records/a.acquire.json",
        {
            "stage": "acquire",
            "cell": "mini/a",
            "seed": 0,
            "params": {},
            "inputs": {},
            "environment": {},
            "code": {"digest": "x", "files": {"a.py": "0" * 64}},
            "outputs": {"data/mini/raw/a/b.csv": {"sha256": "0" * 64, "bytes": 3}},
        },
    )
    files.write_json(folder / "dvc.yaml", {"stages": {"acquire": {"cmd": "x"}}})
    files.write_json(
        folder / "dvc.lock",
        {
            "schema": "2.0",
            "stages": {
                "acquire": {
                    "cmd": "x",
                    "deps": [{"path": "a.py", "md5": "0" * 32}],
                    "outs": [{"path": "data/mini/raw/a", "md5": "0" * 32 + ".dir"}],
                    "params": {"params.yaml": {"a": 1}},
                }
            },
        },
    )
    (folder / "data/mini/raw").mkdir()
    files.write_json(
        folder / "data/mini/raw/a.dvc", {"outs": [{"path": "a", "md5": "0" * 32 + ".dir"}]}
    )


def _locks(folder: Path) -> list[hashes.Entry]:
    """What the audit does with all locks: errors are told in a list; any of them counts as the
    refusal."""
    locks = hashes.Locks(folder)
    for error in locks.errors:
        raise error
    return locks.entries


def _node(folder: Path) -> chain.Node:
    """A record that cannot be used becomes a node with its error, which counts as the refusal."""
    path = "data/mini/records/a.acquire.json"
    node = chain.read_node(path, lambda: files.read_json(folder / path))
    if node.error:
        raise DataError(node.error)
    return node


def _truth(folder: Path) -> None:
    """The simulator's truth."""
    (folder / "a.csv").write_text(FRAMES)
    pl.DataFrame(
        {"ts_s": [1.0, 2.0], "icao": ["4B1001"] * 2}
        | {name: [1.0, 2.0] for name in (*truth.LINEAR, *truth.ANGLES)}
    ).write_parquet(folder / "truth.parquet")


def _decoded(folder: Path, entry: str) -> list[str]:
    """Decoding as the stage does it, into a folder of its own; the files that it wrote there."""
    with tempfile.TemporaryDirectory() as out:
        decode.transform(folder, ["a.csv"], entry, DECODE, Path(out))
        return [path.name for path in Path(out).iterdir()]


def _judged(folder: Path) -> bool:
    """The gate's word is read and lets pass."""
    prepare.check_gate(folder / "gate.json", folder / "winds.parquet")
    return True


def _unpacked(folder: Path, name: str) -> list[str]:
    """What an archive holds."""
    archive.extract(folder / name, folder / "unpacked")
    return [path.name for path in (folder / "unpacked").iterdir()]


OWN = (
    "ts_s,icao,lat_deg,lon_deg,alt_ft,u_m_s,v_m_s,u_true_m_s,v_true_m_s\n"
    + "1600000000.5,4B1001,46.5,7.25,34000,10.5,-3.25,10.0,-3.0\n" * 3
)
STATES = (
    "ts,icao,lat,lon,alt,gs_adsb,trk_adsb,hdg,ias,mach,trk,gs,tas\n"
    + "1600000000,4B1001,46,7,34000,450,90,89,280,0.78,90,450,460\n" * 3
)
FRAMES = "1495353600,A000029C85E42F313000007047D3\n1495353601.5,A0001838CA3E51F0A8000047A36A\n"
npy = io.BytesIO()
np.save(npy, np.arange(12, dtype=np.float32).reshape(3, 4))

READERS = {
    "json": Reader(
        "a.json",
        texts(a__json='{"a": [1, 2.5, "x"], "b": null}'),
        lambda f: files.read_json(f / "a.json"),
    ),
    "yaml": Reader(
        "a.yaml",
        texts(a__yaml="a: [1, 2.5]\nb: {c: true, d: text}\n"),
        lambda f: reading.read_yaml(f / "a.yaml"),
    ),
    "params": Reader(
        "params.yaml", texts(params__yaml=PARAMS), lambda f: params.load(f / "params.yaml")
    ),
    "part of params": Reader(
        "stages/params/models/trend.yaml",
        texts(params__yaml=PARAMS, stages___params___models___trend__yaml="arms: {plain: {}}\n"),
        lambda f: params.load(f / "params.yaml"),
    ),
    "frames": Reader("a.csv", texts(a__csv=FRAMES), lambda f: frames.read(f / "a.csv")),
    "winds": Reader("a.csv", texts(a__csv=OWN), lambda f: _decoded(f, "winds")),
    "states": Reader("a.csv", texts(a__csv=STATES), lambda f: _decoded(f, "states")),
    "frames to winds": Reader("a.csv", texts(a__csv=FRAMES), lambda f: _decoded(f, "frames")),
    "npy": Reader(
        "a.npy", texts(a__npy=npy.getvalue()), lambda f: arrays.load(f / "a.npy", (3, 4))
    ),
    "tensors of PyTorch": Reader("a.pt", _archives, lambda f: darcy.unpack(f / "a.pt")),
    "tar.gz": Reader("a.tar.gz", _archives, lambda f: _unpacked(f, "a.tar.gz")),
    "zip": Reader("a.zip", _archives, lambda f: _unpacked(f, "a.zip")),
    "gate": Reader("gate.json", _winds, _judged),
    "decoded winds": Reader("winds.parquet", _winds, _judged),
    "points": Reader(
        "a.csv",
        texts(a__csv="lat_deg,lon_deg,alt_ft,time\n46.5,7.2,34000,2026-01-15T14:30:00Z\n"),
        lambda f: nowcast.read_points(f / "a.csv"),
    ),
    "field model": Reader("weights.safetensors", _field, lambda f: nowcast.load(f)),
    "order model": Reader("weights.safetensors", _order, lambda f: sampled.load(f)),
    "checkpoint": Reader(
        "step-000000003/state.safetensors",
        lambda f: Checkpoints(f).save(3, STATE, {"step": 3}),
        lambda f: Checkpoints(f).latest(STATE),
    ),
    "checkpoint's facts": Reader(
        "step-000000003/state.json",
        lambda f: Checkpoints(f).save(3, STATE, {"step": 3}),
        lambda f: Checkpoints(f).latest(STATE),
    ),
    "checkpoint's pointer": Reader(
        "latest",
        lambda f: Checkpoints(f).save(3, STATE, {"step": 3}),
        lambda f: Checkpoints(f).latest(STATE),
    ),
    "promotions": Reader("ledger.jsonl", _ledger, lambda f: ledger.read(f / "ledger.jsonl")),
    "raw manifest": Reader(
        "manifest.json",
        texts(manifest__json='{"files": {"a.csv": {"sha256": "00", "bytes": 3}}}'),
        lambda f: intake.state_of(f),
    ),
    "run record": Reader("data/mini/records/a.acquire.json", _record, _node),
    "lock": Reader("dvc.lock", _record, _locks),
    "declaration": Reader("dvc.yaml", _record, _locks),
    "added captures": Reader("data/mini/raw/a.dvc", _record, _locks),
    "prepared sets": Reader("sets.safetensors", _sets, lambda f: PreparedSets.open(f)),
    "prepared sets' facts": Reader("sets.json", _sets, lambda f: PreparedSets.open(f)),
    "prepared sequences": Reader("sequences.safetensors", _sets, lambda f: Sequences.open(f)),
    "prepared sequences' facts": Reader("sequences.json", _sets, lambda f: Sequences.open(f).axes),
    "prepared rows": Reader("rows.parquet", _prepared, lambda f: Pairs.open(f)),
    "prepared rows' facts": Reader("prepared.json", _prepared, lambda f: Pairs.open(f)),
    "rows to compare": Reader("rows.parquet", _prepared, lambda f: compare.Prepared.open(f)),
    "facts to compare": Reader("prepared.json", _prepared, lambda f: compare.Prepared.open(f)),
    "contexts": Reader(
        "contexts/neighbours.npy",
        _prepared,
        lambda f: cache.Cache.open(f / "contexts", Pairs.open(f), toy_sky.NEARBY),
    ),
    "contexts' facts": Reader(
        "contexts/contexts.json",
        _prepared,
        lambda f: cache.Cache.open(f / "contexts", Pairs.open(f), toy_sky.NEARBY),
    ),
    "truth": Reader("truth.parquet", _truth, lambda f: _decoded(f, "frames")),
}

"""What is not a model of ours is refused, without running anything in it."""

import io
import json
import pickle
import struct
import zipfile
from pathlib import Path

import pytest
import torch
from safetensors.torch import load as tensors_of
from safetensors.torch import save

from stages.errors import DataError
from stages.fields.models import build
from stages.training import store

METADATA = {
    "module": "stages.fields.models.msa",
    "model": "msa",
    "arm": "shared",
    "size": "5k",
    "seed": 0,
    "x_dim": 3,
    "i_dim": 2,
    "o_dim": 2,
    "arguments": {"encoder": "shared", "width": 12, "heads": 2, "layers": 3},
}


class Canary:
    """Unpickling it creates a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (Path.touch, (Path(self.path),))


def written(tmp_path, data: bytes) -> str:
    path = tmp_path / "weights.safetensors"
    path.write_bytes(data)
    return str(path)


def good() -> bytes:
    torch.manual_seed(0)
    return store.dump(build("msa", METADATA["arguments"]), METADATA)


def altered(tensors=None, **metadata) -> bytes:
    return save(
        {**tensors_of(good()), **(tensors or {})},
        {store.ENTRY: json.dumps({**METADATA, **metadata})},
    )


def test_a_good_one_loads(tmp_path):
    assert store.load(written(tmp_path, good()))[1] == METADATA


@pytest.mark.parametrize("kind", ["pickle", "zip"])
@pytest.mark.fault("F13")
def test_a_pickle_is_refused_and_never_run(tmp_path, kind):
    canary = tmp_path / "canary"
    poison = pickle.dumps({"weight": Canary(str(canary))})
    if kind == "zip":  # the form that torch.save writes
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr("archive/data.pkl", poison)
        poison = buffer.getvalue()
    with pytest.raises(DataError, match="not a model that we wrote"):
        store.load(written(tmp_path, poison))
    assert not canary.exists()
    if kind == "pickle":
        pickle.loads(poison)
        assert canary.exists()  # the trap was armed


@pytest.mark.parametrize(
    "data,word",
    [
        (lambda: b"", "Error"),
        (lambda: good()[:-5], "Error"),
        (lambda: struct.pack("<Q", 2**60) + b"{}", "Error"),
        (lambda: save({"weight": torch.zeros(3)}), "metadata"),
        (lambda: save({"weight": torch.zeros(3)}, {"tradewind": "[1]"}), "metadata"),
        (lambda: altered(model="resnet"), "resnet"),
        (lambda: altered(model="resnet", module="stages.fields.models.resnet"), "resnet"),
        (lambda: altered(module=None), "metadata"),
        (lambda: altered(module="stages.nothing.models.msa"), "no such module"),
        (lambda: altered(module="stages.fields.models.knn"), "knn"),
        (lambda: altered(module="stages.sequences.models.msa"), "vocabulary"),
        (lambda: altered(arguments={"width": 10**9}), "width"),
        (lambda: altered(arguments={"width": "12; rm"}), "width"),
        (lambda: altered(arguments=[1]), "metadata"),
        (lambda: altered(x_dim=10**12), "x_dim"),
        (lambda: altered(arguments={**METADATA["arguments"], "layers": 4}), "other tensors"),
        (lambda: altered({"readout.4.bias": torch.zeros(3)}), "readout.4.bias"),
        (lambda: altered({"readout.4.bias": torch.zeros(2, dtype=torch.float64)}), "float64"),
        (lambda: altered({"readout.4.bias": torch.tensor([0.0, torch.nan])}), "not finite"),
        (lambda: altered({"extra": torch.zeros(2)}), "extra"),
    ],
    ids=[
        "empty",
        "cut",
        "huge header",
        "foreign",
        "list",
        "model",
        "model and module",
        "no module",
        "no family",
        "other module",
        "other family",
        "width",
        "type",
        "arguments",
        "dimension",
        "layers",
        "shape",
        "dtype",
        "nan",
        "extra",
    ],
)
@pytest.mark.fault("F13")
def test_what_does_not_fit_is_refused_by_name(tmp_path, data, word):
    with pytest.raises(DataError, match=word):
        store.load(written(tmp_path, data()))


def test_a_missing_file_is_an_error_with_its_name(tmp_path):
    with pytest.raises(DataError, match="nothing.safetensors"):
        store.load(str(tmp_path / "nothing.safetensors"))


@pytest.mark.parametrize(
    "module",
    ["canary", "stages.canary.models", "canary.models.msa", "stages.models.msa\n", "os.msa"],
)
@pytest.mark.fault("F13")
def test_no_file_chooses_what_is_imported(tmp_path, monkeypatch, module):
    """A module of such a name lies on the path and would leave a file."""
    for name in (module, "stages.canary.models", "canary.models.msa"):
        place = tmp_path / "path" / Path(*name.strip().split(".")).with_suffix(".py")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"open({str(tmp_path / 'canary')!r}, 'w')")
    monkeypatch.syspath_prepend(tmp_path / "path")
    with pytest.raises(DataError, match="unusable metadata"):
        store.load(written(tmp_path, altered(module=module)))
    assert not (tmp_path / "canary").exists()


def test_the_file_names_the_module_of_the_model_that_it_holds(tmp_path):
    torch.manual_seed(0)
    told = {**METADATA, "module": "stages.fields.models.knn"}
    path = written(tmp_path, store.dump(build("msa", METADATA["arguments"]), told))
    assert store.load(path)[1]["module"] == "stages.fields.models.msa"

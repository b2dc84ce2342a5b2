"""A whole params.yaml, changed line by line, and what it is refused with."""

from pathlib import Path

import pytest

from stages import params
from stages.errors import ParamsError

TRUE = Path(__file__).with_name("params_example.yaml").read_text(encoding="utf-8")


def load(tmp_path, text: str | bytes) -> params.Params:
    file = tmp_path / "params.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return params.load(file)


def refused(tmp_path, text: str | bytes) -> str:
    with pytest.raises(ParamsError) as caught:
        load(tmp_path, text)
    assert caught.value.exit_code == 2 and str(tmp_path) in str(caught.value)
    return str(caught.value)


def changed(old: str, new: str) -> str:
    assert old in TRUE
    return TRUE.replace(old, new, 1)

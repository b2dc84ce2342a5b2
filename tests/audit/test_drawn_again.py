"""A figure that differs is drawn again as its stage draws it, before anything is said of it."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from stages.audit import derive
from stages.audit.commands import Command

COMMAND = Command("stages.winds.tabulate", ("wind_baselines", "mini"))


class Drawn:
    """A laid project whose command writes a table, and a figure by what draws it."""

    def __init__(self, place: Path, **kept: str):
        self.root, self.folder, self.ways = place / "kept", place / "laid", []
        (self.root / "figures").mkdir(parents=True)
        (self.folder / "figures").mkdir(parents=True)
        (self.root / "constraints.txt").write_text("")
        (self.root / "table.md").write_text(kept.get("table", "1.0\n"))
        (self.root / "figures/a.png").write_text(kept.get("figure", "plain"))

    def run(self, command: Command, alone: bool = False) -> None:
        """What the command writes, drawn quicker but for `alone`."""
        self.ways.append("plain" if alone else "quicker")
        (self.folder / "table.md").write_text("1.0\n")
        (self.folder / "figures/a.png").write_text(self.ways[-1])


@pytest.mark.parametrize(
    "kept, ways, paths",
    [
        ({"figure": "quicker"}, ["quicker"], []),
        ({"figure": "plain"}, ["quicker", "plain"], []),
        ({"figure": "forged"}, ["quicker", "plain"], ["figures/a.png"]),
        ({"figure": "quicker", "table": "2.0\n"}, ["quicker"], ["table.md"]),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else None,
)
def test_what_differs_is_told_of_what_its_stage_writes(tmp_path, kept, ways, paths):
    laid = Drawn(tmp_path, **kept)
    found = derive.written(laid, COMMAND, ["table.md", "figures"])
    assert laid.ways == ways
    assert [problem.path for problem in found] == paths
    assert all(problem.verdict == "FAIL" for problem in found)


def test_of_two_pictures_all_but_the_compression_counts(tmp_path):
    """One pixel, one word beside the pixels, what follows them, a cut file and no picture."""
    pixels = np.arange(4000, dtype=np.uint8).reshape(50, 80)
    told = PngInfo()
    told.add_text("Comment", "another")

    def kept(name, values, **how):
        file = tmp_path / f"{name}.png"
        Image.fromarray(values).save(file, **how)
        return file

    one = kept("one", pixels, optimize=True)
    assert derive.alike(one, kept("other", pixels, compress_level=0))
    changed = pixels.copy()
    changed[7, 7] ^= 1
    cut, longer, none = (tmp_path / f"{name}.png" for name in ("cut", "longer", "none"))
    cut.write_bytes(one.read_bytes()[:-20])
    longer.write_bytes(one.read_bytes() + b"more")
    none.write_bytes(b"no picture")
    broken = tmp_path / "broken.png"  # a bit of the packed pixels is another
    broken.write_bytes(one.read_bytes()[:200] + b"?" + one.read_bytes()[201:])
    others = (kept("pixel", changed), kept("word", pixels, pnginfo=told), cut, longer, none, broken)
    for other in others:
        assert not derive.alike(one, other) and not derive.alike(other, one)
    assert derive.alike(none, none)

"""Commands that are served run apart from each other, and say how they ended."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from PIL import Image

from stages.audit import derive, quicker, served


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A server of a folder with three modules, which has loaded little."""
    monkeypatch.setattr(served, "LOADED", ("json", "no_such_library"))
    (tmp_path / "fine.py").write_text("import sys\nopen(sys.argv[1], 'w').write(__name__)\n")
    (tmp_path / "broken.py").write_text("import json\njson.left = 1\nraise ValueError('why not')\n")
    (tmp_path / "asked.py").write_text(
        "import json, sys\nsys.exit(4 if hasattr(json, 'left') else 3)\n"
    )
    found = served.Server(tmp_path)
    yield found
    found.close()


def test_a_module_runs_as_the_main_one_with_its_words(server, tmp_path):
    assert server.run("fine", "out.txt") == (0, "")
    assert (tmp_path / "out.txt").read_text() == "__main__"


def test_a_failure_is_told_by_its_last_words_and_leaves_nothing_to_the_next(server):
    code, said = server.run("broken")
    assert code == 1 and said.strip().endswith("ValueError: why not")
    assert server.run("asked") == (3, "")


def test_commands_run_at_once_each_in_its_folder(server, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (tmp_path / "waits.py").write_text(
        "import os, sys, time\nopen(sys.argv[1], 'w').close()\n"
        "while not os.path.exists(sys.argv[2]):\n    time.sleep(0.01)\n"
    )
    (other / "waits.py").write_text((tmp_path / "waits.py").read_text())
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(server.run, "waits", "here", "other/there")
        second = pool.submit(server.run, "waits", "there", "../here", folder=other)
        assert first.result(60) == second.result(60) == (0, "")


def test_every_one_of_many_that_end_at_once_is_answered(server, tmp_path):
    """All wait for a file, then end together."""
    (tmp_path / "together.py").write_text(
        "import os, sys, time\n"
        "while not os.path.exists('now'):\n    time.sleep(0.001)\n"
        "sys.exit(int(sys.argv[1]))\n"
    )
    with ThreadPoolExecutor(64) as pool:
        for turn in range(4):
            found = [pool.submit(server.run, "together", str(k)) for k in range(64)]
            (tmp_path / "now").touch()
            assert [one.result(60)[0] for one in found] == list(range(64)), turn
            (tmp_path / "now").unlink()


def test_a_server_that_has_ended_is_told_and_replaced(server, tmp_path):
    (tmp_path / "fatal.py").write_text("import os\nos.kill(os.getppid(), 9)\n")
    assert server.run("fatal") == (1, "the process that runs commands ended")
    assert server.run("fine", "out.txt")[0] == 0
    server._process.kill()
    server._process.wait()
    assert server.run("fine", "other.txt")[0] == 0


def test_a_server_that_answers_no_more_but_still_listens_is_replaced(server, monkeypatch):
    """So does one that dies, for a moment."""
    with monkeypatch.context() as changed:
        changed.setattr(served, "SERVE", "import os, time\nos.close(1)\ntime.sleep(600)\n")
        assert server.run("fine", "out.txt") == (1, "the process that runs commands ended")
    asked = [str(server.folder), ["fine", "out.txt"], os.devnull]
    assert server._ask(asked).result(60) == 0


def test_a_library_that_cannot_be_made_quicker_is_used_as_it_is(server, tmp_path):
    script = tmp_path / served.QUICKER
    script.parent.mkdir(parents=True)
    script.write_text("raise AttributeError('another version')\n")
    assert server.run("fine", "out.txt") == (0, "")


def test_figures_drawn_quicker_are_the_same_to_the_pixel(tmp_path):
    """A panel with a legend, its twin with text turned and wrapped, in a layout and without."""
    (tmp_path / "plot.py").write_text(PLOT)
    home = Path(quicker.__file__).parents[2]
    for name in ("plain", "quick"):
        words = [sys.executable, "-c", f"import plot; plot.main({name!r})"]
        path = os.pathsep.join((str(tmp_path), str(home)))
        subprocess.run(words, check=True, cwd=tmp_path, env=os.environ | {"PYTHONPATH": path})
    assert len(list(tmp_path.glob("*.png"))) == 4
    for kind in ("constrained", "none"):
        plain, quick = (tmp_path / f"{name}-{kind}.png" for name in ("plain", "quick"))
        assert plain.stat().st_size < quick.stat().st_size / 4  # the quick one is not compressed
        assert derive.alike(plain, quick)
        assert Image.open(plain).tobytes() == Image.open(quick).tobytes()


PLOT = """
import matplotlib.pyplot as plt
from stages.audit import quicker
from stages.figures import drawing

def main(name):
    if name == "quick":
        quicker.begin()
    for layout in ("constrained", "none"):
        figure, axes = plt.subplots(2, 2, layout=layout)
        for number, one in enumerate(axes.flat):
            one.plot([1, 10, 100], [1, 3 + number, 2], label="a")
            one.scatter([1, 5], [2, 2], label="b $x^2$")
            one.set(title="two\\nlines", xlabel="x", ylabel="y", xscale="log")
            drawing.numbered(one.xaxis)
        axes[0, 0].legend()
        axes[0, 1].text(2, 2, "turned", rotation=30, ha="center")
        axes[1, 0].text(1, 1, "a long text that is wrapped " * 3, wrap=True)
        axes[1, 1].imshow([[0, 1], [2, 3]], aspect="equal")
        figure.colorbar(axes[1, 1].images[0], ax=axes[1, 1])
        figure.suptitle("all")
        drawing.save(figure, f"{name}-{layout}.png")
"""

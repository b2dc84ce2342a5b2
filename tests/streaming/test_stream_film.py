"""The moving picture of a followed nowcast: one small file, whole at any time, of the last answers
in their order."""

from argparse import Namespace
from types import SimpleNamespace

import numpy as np
from PIL import Image

from stages.verbs import winds
from stages.winds.nowcast import picture
from stages.winds.streaming import film, follow
from stages.winds.streaming.film import Film


def drawn(path, number, size=(850, 650)):
    """A picture whose brightness tells its number."""
    rows = np.full((size[1], size[0], 3), 2 * number, dtype=np.uint8)
    Image.fromarray(rows).save(path, "PNG")
    return path


def numbers(path):
    with Image.open(path) as whole:
        found = []
        for frame in range(whole.n_frames):
            whole.seek(frame)
            found.append(round(float(np.array(whole.convert("RGB")).mean()) / 2))
        return found, whole.size, whole.info["loop"]


def test_the_last_answers_move_in_their_order_and_begin_again(tmp_path, monkeypatch):
    monkeypatch.setattr(film, "FRAMES", 4)
    moving, path = Film(), tmp_path / "now.gif"
    for number in range(1, 8):
        # a picture of another size, as another window draws it, does not spoil the file
        size = (900, 600) if number == 6 else (850, 650)
        moving.add(drawn(tmp_path / "one", number, size))
        moving.write(path)
        found, pixels, loop = numbers(path)
        assert found == list(range(max(1, number - 3), number + 1)) and loop == 0
        assert pixels == (film.WIDTH, round(film.WIDTH * 650 / 850))
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith(".")] == []


def test_a_stream_that_is_drawn_as_gif_moves_and_as_png_does_not(tmp_path, monkeypatch):
    for number, name in enumerate(("now.gif", "now.png")):
        said = iter(range(1, 4))
        monkeypatch.setattr(picture, "draw", lambda rows, path, said=said: drawn(path, next(said)))

        def feed(source, emit, **_):
            for line in ({"winds": []}, {"silent_s": 9}, {"winds": []}):
                emit(SimpleNamespace(rows=[]), line)

        monkeypatch.setattr(follow, "follow", feed)
        monkeypatch.setattr(follow, "summary", lambda ended: "ended")
        asked = dict.fromkeys(("form", "every", "at", "points", "grid", "route"))
        asked |= {"follow": "feed", "out": tmp_path / "out", "plot": tmp_path / name}
        assert winds.followed(Namespace(**asked), "model", None) == 0
        with Image.open(tmp_path / name) as found:
            assert getattr(found, "n_frames", 1) == (2, 1)[number]
            assert found.format == ("GIF", "PNG")[number]
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith(".")] == []


def test_memory_and_file_stay_small_however_long_a_feed_lasts(tmp_path):
    moving, path = Film(), tmp_path / "now.gif"
    rng = np.random.default_rng(0)
    rough = rng.integers(0, 255, (65, 85, 3), dtype=np.uint8).repeat(10, 0).repeat(10, 1)
    Image.fromarray(rough).save(tmp_path / "one", "PNG")
    for _ in range(3):
        moving.add(tmp_path / "one")
    moving.write(path)
    held = sum(np.asarray(one).nbytes for one in moving.frames)
    assert held <= 3 * film.WIDTH * 490 and moving.frames.maxlen == film.FRAMES
    assert path.stat().st_size < 3 * 200_000

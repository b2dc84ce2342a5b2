"""A followed nowcast as one small moving picture: the last FRAMES answers, a GIF that begins again.

A frame is a drawn answer, WIDTH pixels wide in COLOURS colours unless it is told otherwise, so that
the file stays below a few megabytes and memory below FRAMES times a frame however long a feed
lasts.
"""

import os
from collections import deque
from pathlib import Path

from PIL import Image

FRAMES, WIDTH, COLOURS = 60, 640, 64
SHOWN_MS, LAST_MS = 250, 2000  # how long a frame stands, and the newest


class Film:
    """Frames in the order in which they came."""

    def __init__(self, width: int = WIDTH, colours: int = COLOURS) -> None:
        self.width, self.colours = width, colours
        self.frames: deque[Image.Image] = deque(maxlen=FRAMES)

    def add(self, picture: Path) -> None:
        """One more, from a picture in a file; all are as large as the first."""
        with Image.open(picture) as opened:
            whole = opened.convert("RGB")
        size = (self.width, round(self.width * whole.height / whole.width))
        size = self.frames[0].size if self.frames else size
        self.frames.append(whole.resize(size).quantize(self.colours))

    def write(self, path: Path) -> None:
        """The file, whole at any time."""
        first, *others = self.frames
        times = [SHOWN_MS] * len(others) + [LAST_MS]
        drawn = path.with_name(f".{path.name}.tmp")
        first.save(drawn, "GIF", save_all=True, append_images=others, duration=times, loop=0)
        os.replace(drawn, path)

"""Matplotlib without the work that its figures do not show, for figures that are compared with
kept ones: the pixels are the same.

A figure with a layout is drawn twice, once for the places of its parts: that pass lays out and
draws nothing. A text is laid out five times alike, a font's tables are read each time: once is
enough. So it is with an axis' ticks and their labels' places while a figure is printed. Pictures
are not compressed, one that is written to memory to be opened there is handed over, parameters are
read once, and no record is made of a run that nobody keeps. Whoever compares draws what differs but
in that again without this (derive.py), so that a difference is Matplotlib's own word. A server runs
this file and its `begin` (served.py); no module of a stage imports it.
"""

import contextlib
import functools
import io
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from matplotlib import text
from matplotlib.axis import Axis
from matplotlib.backend_bases import FigureCanvasBase
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image
from PIL.Image import Image as Picture

from stages import code, params, records
from stages.errors import ParamsError


def placed(plain: Any) -> Any:
    """Figure.draw whose pass without a canvas lays out, and no more."""

    @functools.wraps(plain)
    def draw(figure: Figure, renderer: Any) -> None:
        engine = figure.get_layout_engine()
        if "draw_path" not in vars(renderer):  # print_figure puts what draws nothing there
            plain(figure, renderer)
        elif engine is not None:
            engine.execute(figure)

    return draw


def uncompressed(plain: Any) -> Any:
    """Image.save without compression of PNG, which takes longest; none is written to memory."""

    @functools.wraps(plain)
    def save(picture: Picture, target: Any, format: str | None = None, **told: Any) -> None:
        quick = {"optimize": False, "compress_level": 0} if format in ("png", "PNG") else {}
        if quick and isinstance(target, io.BytesIO):
            handed[target] = picture
        else:
            plain(picture, target, format, **told | quick)

    return save


def opened(plain: Any) -> Any:
    """Image.open, which is handed what was saved in memory."""

    @functools.wraps(plain)
    def read(source: Any, *told: Any, **named: Any) -> Picture:
        mine = handed.pop(source, None) if isinstance(source, io.BytesIO) else None
        return plain(source, *told, **named) if mine is None else mine

    return read


def once(plain: Any) -> Any:
    """Text._get_layout, remembered by all that it reads."""
    known: dict[Any, Any] = {}

    @functools.wraps(plain)
    def layout(one: Text, renderer: Any) -> Any:
        figure = one.get_figure(root=True)
        if one.get_wrap() or figure is None:
            return plain(one, renderer)
        key = (
            type(renderer),
            figure.dpi,
            one.get_text(),
            hash(one.get_fontproperties()),
            one.get_rotation(),
            one.get_rotation_mode(),
            *(getattr(one, name) for name in ALIGNED),
            one.get_usetex(),
            one.get_parse_math(),
        )
        if key not in known:
            known[key] = plain(one, renderer)
        return known[key]

    return layout


def printing(plain: Any) -> Any:
    """FigureCanvasBase.print_figure, during which an axis' ticks stay what they are."""

    @functools.wraps(plain)
    def printed(canvas: Any, *told: Any, **named: Any) -> Any:
        now["print"] = object()
        try:
            return plain(canvas, *told, **named)
        finally:
            now["print"] = None

    return printed


def ticked(plain: Any) -> Any:
    """Axis._update_ticks, remembered during one print by all that it reads."""

    @functools.wraps(plain)
    def update(axis: Axis) -> Any:
        if now["print"] is None:
            return plain(axis)
        known, key = (
            vars(axis).get("_ticked"),
            (
                now["print"],
                *axis.get_view_interval(),
                *axis.axes.bbox.bounds,
                axis.axes.get_figure(root=True).dpi,
                axis.major.locator,
                axis.major.formatter,
                axis.minor.locator,
                axis.minor.formatter,
            ),
        )
        if not known or known[0] != key:
            known = vars(axis)["_ticked"] = key, plain(axis)
        return [*known[1]]

    return update


def boxed(plain: Any) -> Any:
    """Axis._get_ticklabel_bboxes, remembered with the ticks: whoever asks has just updated them."""

    @functools.wraps(plain)
    def boxes(axis: Axis, ticks: Any, renderer: Any) -> Any:
        if now["print"] is None or "_ticked" not in vars(axis):
            return plain(axis, ticks, renderer)
        key, known = vars(axis)["_ticked"][0], vars(axis).get("_boxed")
        if not known or known[0] != key:
            known = vars(axis)["_boxed"] = key, plain(axis, ticks, renderer)
        return known[1]

    return boxes


def unmade(*_: Any, **__: Any) -> dict[str, Any]:
    """An empty record: nobody compares what a process tells of itself."""
    return {"environment": {}}


def read_once(plain: Any) -> Any:
    """params.load, which knows those of where it runs: every laid folder has the commit's own."""
    known = plain()

    @functools.wraps(plain)
    def load(path: Any = params.WHOLE) -> Any:
        here = Path(path).resolve() == Path(params.WHOLE).resolve()
        return known if here else plain(path)

    return load


now: dict[str, object] = {"print": None}  # the print that is going on
handed: WeakKeyDictionary[io.BytesIO, Picture] = WeakKeyDictionary()
ALIGNED = ("_horizontalalignment", "_verticalalignment", "_multialignment", "_linespacing")


def begin() -> None:
    """Set it for this process, and load what a first figure loads."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(layout="constrained")
    axes.set_title("$10^1$ first")
    figure.canvas.draw()
    plt.close(figure)
    Image.preinit()
    for owner, name, other in (
        (Figure, "draw", placed),
        (Picture, "save", uncompressed),
        (Image, "open", opened),
        (text.Text, "_get_layout", once),
        (FigureCanvasBase, "print_figure", printing),
        (Axis, "_update_ticks", ticked),
        (Axis, "_get_ticklabel_bboxes", boxed),
    ):
        setattr(owner, name, other(getattr(owner, name)))
    records.make = unmade  # it is of a run that nobody keeps
    code.recorded = unmade
    with contextlib.suppress(ParamsError):  # whoever asks for them says so
        params.load = read_once(params.load)

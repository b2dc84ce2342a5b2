"""Charts of series as SVG inside the page: whole without the script, which adds values under the
pointer and lines that can be switched off (page_charts.js).

Colours are those of the figures, made for white; at night those that would sink into the ground are
lighter. Places are in units of the view box, 560 x 300; values in the axes' own units.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from markupsafe import Markup, escape

from stages.figures.curves import curves
from stages.page.blocks import Chart, Line, Picture

WIDTH, HEIGHT = 560, 300
LEFT, RIGHT, TOP, BOTTOM = 66, 548, 12, 248  # the frame
MARKED = 12  # so many points at most have a mark each
TICKS = 6  # at most, about
STEEP = 20  # largest over smallest value, from which on an axis of losses is logarithmic
LEVELS = ("6 4", "2 3", "9 3 2 3")  # dashes of horizontal lines, in turn
DASHED = "5 3"
COLOURS = ("#1d6fa5", "#c1121f", "#01665e", "#762a83", "#e69f00", "#3a0ca3", "#8d8741", "#4cc9f0")
GROUND, SEEN = "#1a2029", 4.0  # a page's cards at night; the least contrast of a line with them
PLAIN = "#6b7480"  # of a level: stands out by day and by night


def short(value: float) -> str:
    """A number in a few digits: 0.3162, 12,345, 1.2e+06."""
    return f"{value:,.0f}" if 1e3 <= abs(value) < 1e6 else f"{value:.4g}"


def steps(low: float, high: float) -> list[float]:
    """Round values from `low` to `high`, 1, 2 or 5 times a power of ten apart."""
    size = (high - low) / TICKS
    power = 10.0 ** math.floor(math.log10(size))
    size = next(power * by for by in (1, 2, 5, 10) if power * by >= size * 0.999)
    first = math.ceil(low / size - 1e-9)
    return [round(size * k, 12) for k in range(first, math.floor(high / size + 1e-9) + 1)]


def powers(low: float, high: float) -> list[float]:
    """1, 2 and 5 times the powers of ten from `low` to `high`; of many powers those alone."""
    least, most = math.floor(math.log10(low)), math.ceil(math.log10(high))
    by = (1, 2, 5) if most - least <= 2 else (1,)
    every = max(1, (most - least) // TICKS)
    found = [n * 10.0**k for k in range(least, most + 1, every) for n in by]
    return [one for one in found if low * 0.999 <= one <= high * 1.001]


class Axis:
    """From values to places; logarithmic where that was asked for and every value is positive."""

    def __init__(self, values: list[float], start: float, end: float, log: bool, zero: bool):
        low, high = min(values), max(values)
        self.log = log and low > 0
        if not self.log and zero and 0 < low < 0.6 * high:
            low = 0.0
        if low == high:
            low, high = (low / 2, high * 2) if self.log else (low - 1, high + 1)
        self.low, self.high, self.start, self.end = low, high, start, end

    def at(self, value: float) -> float:
        """The place of a value."""
        ends = (self.low, self.high, value)
        low, high, here = map(math.log10, ends) if self.log else ends
        return self.start + (self.end - self.start) * (here - low) / (high - low)

    def ticks(self) -> list[float]:
        """Where the axis is numbered; a logarithmic one of less than a power of ten as a plain."""
        found = powers(self.low, self.high) if self.log else []
        return found if len(found) > 1 else steps(self.low, self.high)


def drawn(chart: Chart) -> Markup:
    """A chart as SVG: ground, grid, numbered axes, bands and lines."""
    xs = [value for line in chart.lines for value in line.x]
    ys = [value for line in chart.lines for part in (line.y, line.low, line.high) for value in part]
    inset = 34 if chart.names else 6  # half of a name
    across = Axis(xs, LEFT + inset, RIGHT - inset, "x" in chart.log, zero=False)
    levels = [value for _, value in chart.levels]
    up = Axis([*ys, *levels], BOTTOM - 4, TOP + 4, "y" in chart.log, zero=True)
    about = f'aria-label="{escape(said(chart))}" data-x="{escape(chart.x)}"'
    parts = [
        f'<svg class="plot" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" {about}>',
        f'<rect class="ground" width="{WIDTH}" height="{HEIGHT}"/>',
        *frame(chart, across, up),
        *(series(line, across, up) for line in chart.lines),
        *(
            f'<g class="line" color="{PLAIN}" data-y="{value:.4g}">{coloured(PLAIN)}'
            f'<path d="M{LEFT} {up.at(value):.1f}H{RIGHT}" '
            f'stroke-dasharray="{LEVELS[number % len(LEVELS)]}"/></g></g>'
            for number, (_, value) in enumerate(chart.levels)
        ),
        "</svg>",
    ]
    return Markup("".join(parts))


def said(chart: Chart) -> str:
    """A chart in words, for those who do not see it: what is drawn, and where each line ends."""
    ends = "; ".join(f"{line.name} ends at {short(line.y[-1])}" for line in chart.lines)
    return f"{chart.y} against {chart.x}: {ends}"


def frame(chart: Chart, across: Axis, up: Axis) -> Iterable[str]:
    """The grid, the numbers along the axes and their titles."""
    yield '<g class="grid">'
    for value in up.ticks():
        y = up.at(value)
        yield f'<path d="M{LEFT} {y:.1f}H{RIGHT}"/>'
        yield f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{short(value)}</text>'
    places = [float(k) for k in range(len(chart.names))] or across.ticks()
    for number, place in enumerate(places):
        x, words = across.at(place), chart.names[number] if chart.names else short(place)
        y = BOTTOM + 16 + 13 * (number % 2 if chart.names else 0)  # names would meet on one line
        yield f'<path d="M{x:.1f} {TOP}V{BOTTOM}"/>'
        named = f' data-n="{place:g}"' if chart.names else ""
        yield f'<text x="{x:.1f}" y="{y}" text-anchor="middle"{named}>{escape(words)}'
        yield "</text>"
    middle = (TOP + BOTTOM) // 2
    yield f'<text x="{(LEFT + RIGHT) // 2}" y="{HEIGHT - 6}" text-anchor="middle" class="title">'
    yield f"{escape(chart.x)}</text>"
    yield f'<text transform="translate(14 {middle})rotate(-90)" text-anchor="middle" class="title">'
    yield f"{escape(chart.y)}</text></g>"


def series(line: Line, across: Axis, up: Axis) -> str:
    """A line with its band, and a mark a point where there are few; its values stand beside it."""

    def path(values: tuple[float, ...]) -> list[str]:
        return [f"{across.at(x):.1f},{up.at(y):.1f}" for x, y in zip(line.x, values, strict=True)]

    points = path(line.y)
    band = " ".join(path(line.low) + path(line.high)[::-1]) if line.low != line.high else ""
    told = " ".join(f"{x:.8g}" for x in line.x), " ".join(f"{y:.4g}" for y in line.y)
    dash = f' stroke-dasharray="{DASHED}"' if line.dashed else ""
    marks = points if len(points) <= MARKED else []
    return "".join(
        [
            f'<g class="line" color="{line.colour}" data-x="{told[0]}" data-y="{told[1]}">',
            coloured(line.colour),
            f'<polygon points="{band}"/>' if band else "",
            f'<polyline points="{" ".join(points)}"{dash}/>',
            *('<circle cx="{}" cy="{}" r="2.6"/>'.format(*at.split(",")) for at in marks),
            "</g></g>",
        ]
    )


def light(colour: str) -> float:
    """The relative luminance of #rrggbb, as WCAG 2 defines it."""
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    red, green, blue = (
        one / 12.92 if one <= 0.03928 else ((one + 0.055) / 1.055) ** 2.4 for one in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def night(colour: str) -> str:
    """A colour with so much white in it that it is seen at night."""
    for share in range(0, 101, 4):
        parts = [int(colour[k : k + 2], 16) for k in (1, 3, 5)]
        mixed = "#" + "".join(f"{one + round((255 - one) * share / 100):02x}" for one in parts)
        if (light(mixed) + 0.05) / (light(GROUND) + 0.05) >= SEEN:
            return mixed
    return "#ffffff"


def coloured(colour: str) -> Markup:
    """The start of a group in a colour by day and by night, inside one that has it by day: a
    browser that does not know `light-dark` stays with that."""
    return Markup(f'<g color="light-dark({colour},{night(colour)})">')


def legend(chart: Chart) -> list[tuple[str, Markup, str]]:
    """(name, start of a group in its colour, dashes) of every line and level, in their order."""
    return [
        *(
            (line.name, coloured(line.colour), DASHED if line.dashed else "")
            for line in chart.lines
        ),
        *(
            (name, coloured(PLAIN), LEVELS[number % len(LEVELS)])
            for number, (name, _) in enumerate(chart.levels)
        ),
    ]


def learning(
    cells: dict[str, Any],
    dataset: str,
    arms: Iterable[str],
    called: Callable[[str], str],
    colour: Callable[[str], str] | None = None,
    loss: str = "validation loss",
    levels: tuple[tuple[str, float], ...] = (),
) -> Chart | None:
    """Validation loss against steps of those arms that have a history, the mean over seeds with
    their range; None where none has one. `colour` of an arm; else in turn, as figures of ranked
    arms have it."""
    found, lines, seen = curves(cells, dataset), [], set[str]()
    learned = [one for one in arms if one in found]
    for place, arm in enumerate(learned):
        steps_, losses = found[arm]
        bands = [tuple(map(float, part)) for part in (losses.min(0), losses.max(0))]
        shade = colour(arm) if colour else COLOURS[place % len(COLOURS)]
        lines.append(
            Line(
                name=called(arm),
                colour=shade,
                x=tuple(map(float, steps_)),
                y=tuple(map(float, losses.mean(0))),
                low=bands[0] if len(losses) > 1 else (),
                high=bands[1] if len(losses) > 1 else (),
                dashed=shade in seen,
            )
        )
        seen.add(shade)
    if not lines:
        return None
    ys = [value for line in lines for value in line.y]
    steep = min(ys) > 0 and max(ys) > STEEP * min(ys)
    caption = "Validation loss against steps, the mean over seeds with their range."
    return Chart(caption, "step", loss, tuple(lines), levels, log="y" if steep else "")


def over(
    pictures: Iterable[Picture], charts: dict[str, Chart | None]
) -> tuple[Picture | Chart, ...]:
    """The pictures, each chart in place of the figure of its name, which it keeps; a chart that no
    figure shows comes last where it compares lines, and what is None stays the figure."""
    left = {f"figures/{name}.png": one for name, one in charts.items() if one}
    found = [
        replace(left.pop(one.file), picture=one) if one.file in left else one for one in pictures
    ]
    return (*found, *(one for one in left.values() if len(one.lines) > 1))

"""What is compared of models of fields: arms by size and encoding, the ratio of two errors, an
error and a bar. All in logarithms."""

import re
from collections.abc import Callable

from stages.claims.levels import Side, against, lacking, leaf, level
from stages.claims.levels import ratio as ratio_of
from stages.claims.parts import Evaluation, Part
from stages.claims.trained import Marks, decided, untrained, withheld

OWN = {
    "msa": "shared",
    "tfs": "shared",
    "gen": "traditional",
    "cnp": "traditional",
}  # the encoding of each in table 3.2
ERROR = ("metrics", "mse")
MARKS = Marks(ERROR, ("metrics", "mse_permuted"), ("metrics", "r2"))


class Evaluated(Evaluation):
    """One data set's cells, as metrics.json has them."""

    plainest = "shared"

    def sizes(self, model: str) -> dict[str, list[str]]:
        """Size -> arms of that size of a model, in the order of `model`."""
        found: dict[str, list[str]] = {}
        for arm in self.model(model):
            found.setdefault(arm.rpartition("-")[2], []).append(arm)
        return found

    def tabled(self, model: str, size: str) -> str:
        """The arm that stands for a model at a size: with the encoding of table 3.2, else the
        first; a name that was not run if none was."""
        arms, own = self.sizes(model).get(size, []), OWN.get(model, "plain")
        return next(
            (arm for arm in arms if arm.split("-")[1].startswith(own)),
            arms[0] if arms else f"{model}-{own}-{size}",
        )

    def encodings(self, model: str) -> list[tuple[str, str]]:
        """(shared, traditional) arms of a model that differ in the encoder of positions alone;
        their plain names where neither was run."""
        words = [
            arm.split("-")
            for arm in self.model(model)
            if re.match(r"[^-]+-(shared|traditional)", arm)
        ]
        kinds = dict.fromkeys(
            (word[1].removeprefix("shared").removeprefix("traditional"), "-".join(word[2:]))
            for word in words
        )

        def names(kind, size):
            return tuple(
                "-".join(filter(None, (model, encoder + kind, size)))
                for encoder in ("shared", "traditional")
            )

        return [names(*one) for one in kinds] or [names("", "")]


def ratio(
    measured: Evaluated, left: str, right: str, bar: float = 1.0, path: tuple[str, ...] = ERROR
) -> Part:
    """The arm `left` has the smaller number: right over left exceeds the bar. Which of two errors
    is the smaller stays undecided where one of the arms is untrained."""
    name = f"{left} < {right}" + (f" by {bar:.2f} x" if bar != 1 else "")
    sides = Side(left, path), Side(right, path)
    if any(level(measured, side) is None for side in sides):
        return lacking(measured, name, list(sides))
    found = ratio_of(measured, name, sides[1], sides[0], bar, True)
    return decided(found, measured, [left, right], MARKS) if path == ERROR else found


def beyond(
    measured: Evaluated, arm: str, bar: float, above: bool, path: tuple[str, ...], words: str
) -> Part:
    """An arm's own number above or below a bar."""
    name = f"{arm} {'>' if above else '<'} {bar:g}"
    return against(measured, name, Side(arm, path), bar, above, words, logarithm=True)


def each(measured: Evaluated, models: tuple[str, ...], claim: Callable[[str], Part]) -> list[Part]:
    """A claim on every arm of some models; on the model's bare name, which tells that it is
    missing, where none was run."""
    return [claim(arm) for model in models for arm in (measured.model(model) or [model])]


def solved(part: Part, measured: Evaluated, arms: list[str], bar: float) -> Part:
    """The part, undecided where one of its arms does not read its context, or has an MSE that is
    not below the bar, in each of its cells with the whole 90 % interval over sets."""
    reasons = []
    for arm in arms:
        found = [leaf(measured.cells[cell], ERROR) or {} for cell in measured.arm(arm)]
        worst = max((one.get("high", one.get("value", bar)) for one in found), default=0.0)
        if worst >= bar:
            reasons.append(
                f"{arm} has not solved its task (MSE up to {worst:.3g}, not below {bar})"
            )
        elif why := untrained(measured, arm, MARKS):
            reasons.append(why)
    return withheld(part, reasons)

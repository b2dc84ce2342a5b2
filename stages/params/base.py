"""What all parts of params.yaml share: the frozen section and its kinds of numbers and names."""

import difflib
from collections.abc import Iterable
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_]*$", max_length=40)]
FileName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=100)]
Positive = Annotated[float, Field(gt=0, le=1e9)]
Count = Annotated[int, Field(gt=0, le=10**9)]
Counts = Annotated[tuple[Count, ...], Field(min_length=1)]
Seed = Annotated[int, Field(ge=0, le=2**31 - 1)]
Interval = tuple[Annotated[float, Field(ge=0)], Annotated[float, Field(gt=0)]]


class Section(BaseModel):
    """A frozen part of params.yaml; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class Problems(ValueError):
    """What parameters say that is not so, a line each; Pydantic takes it for one error."""

    def __init__(self, lines: Iterable[str]):
        self.lines = tuple(lines)
        super().__init__("; ".join(self.lines))


MOST = 24  # names that a message lists


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint: the known name closest to `word`, and what is allowed, unless that is too long. Of a
    name with parts (kalman-swept-none) the first may be the closest."""
    known = sorted(known)
    # the first name of those that share a beginning stands for it, unless it is a name of its own
    whose = {one.partition("-")[0]: one for one in reversed(known) if "/" not in one}
    whose |= {one: one for one in known}
    close = difflib.get_close_matches(str(word), whose, n=1)
    told = f"known: {', '.join(known)}" if len(known) <= MOST else f"of {len(known):,}"
    return (f"; did you mean {whose[close[0]]!r}?" if close else "") + f" ({told})"

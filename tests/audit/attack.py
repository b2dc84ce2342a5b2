"""What an attack on results is: what is done, to which number, where it falls."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Attack:
    """What is done to a copy, to which number, and where it falls (`nowhere`: it has no effect)."""

    name: str
    number: str
    depth: str
    path: str
    word: str
    forge: Callable[[Path], None]
    issue: str = ""  # the paragraph that asks for it

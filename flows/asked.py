"""What several commands of the flows take on their command lines."""

import argparse
import re
from collections.abc import Callable


def within(least: int, most: int) -> Callable[[str], int]:
    """What reads an argument as a whole number from `least` to `most`, for `type=` of argparse."""

    def read(text: str) -> int:
        if not re.fullmatch(r"-?\d{1,18}", text, re.ASCII) or not least <= int(text) <= most:
            # argparse puts the option's name before it
            raise argparse.ArgumentTypeError(f"expected {least} to {most}, found {text!r}")
        return int(text)

    return read

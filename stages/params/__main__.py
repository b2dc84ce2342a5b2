"""Whether the parameters of the project in this folder fit their schema: exit code 2 where not,
with every problem on standard error. The flows ask it before they move anything."""

import argparse
import sys

from stages import params
from stages.errors import reported


def main() -> int:
    """Check; the exit code."""
    argparse.ArgumentParser(prog="python -m stages.params", description=__doc__).parse_args()
    return reported(params.load)


if __name__ == "__main__":
    sys.exit(main())

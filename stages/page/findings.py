"""The result tables in reports/FINDINGS.md, between `<!-- results:PROFILE EXPERIMENT ... -->` and
`<!-- /results -->`: `python -m stages.page.findings`.

The findings are written by hand; only these blocks are made, from what the experiments wrote for
the front page, so that no number in them is typed. The caption of experiments after the first names
them.
"""

import argparse
import re
import sys
from pathlib import Path

from stages.errors import DataError, reported
from stages.files import atomic_file, read_json
from stages.page.experiment import DATA
from stages.tables.tabulation import home_of

FINDINGS = Path("reports/FINDINGS.md")
BLOCK = re.compile(r"<!-- results:(\w+)((?: \w+)+) -->\n.*?<!-- /results -->", re.DOTALL)


def block(profile: str, experiments: list[str]) -> str:
    """All tables of one profile; of experiments that were not run none. DataError where the first
    was not run."""
    lines = []
    for place, experiment in enumerate(experiments):
        file = home_of(experiment, profile) / DATA
        if place and not file.exists():
            continue
        for one in read_json(file)["short"]:
            which = f", {experiment}" if place else ""
            lines += [f"*{profile}, {one['dataset']}{which}*: {one['about']}", "", *one["lines"]]
    named = " ".join(experiments)
    return "\n".join([f"<!-- results:{profile} {named} -->", *lines, "<!-- /results -->"])


def fill(path: Path = FINDINGS) -> None:
    """Rewrite the blocks of the file. DataError if it has none."""
    text = path.read_text(encoding="utf-8")
    if not BLOCK.search(text):
        raise DataError(
            "the findings have no results block",
            where=str(path),
            expected="<!-- results:PROFILE EXPERIMENT ... --> ... <!-- /results -->",
        )
    with atomic_file(path, "w") as stream:
        stream.write(BLOCK.sub(lambda found: block(found[1], found[2].split()), text))


def main(argv: list[str] | None = None) -> int:
    """Exit code of the command."""
    about = f"Write the result tables of {FINDINGS} anew, from what each experiment's page tells."
    parser = argparse.ArgumentParser(prog="python -m stages.page.findings", description=about)
    parser.parse_args(argv)
    return reported(fill)


if __name__ == "__main__":
    sys.exit(main())

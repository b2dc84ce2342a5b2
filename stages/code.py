"""`python -m stages.code`: which bytes of code each kind of stage rests on, one list a kind.

Reads stages/code.yaml; writes data/code/KIND.json, {path: SHA-256} of every file of the kind, in
git. A list's bytes change with the code of its kind and with nothing else, so that DVC runs what an
edit touches and no more.
"""

import argparse
import sys
from pathlib import Path

from stages import files, params, records
from stages.errors import DataError, TradewindError

KINDS = Path("stages/code.yaml")
HOME = Path("data/code")


def kinds(root: Path = Path(".")) -> dict[str, list[str]]:
    """Kind -> its files and folders, as stages/code.yaml names them. DataError for what is no
    such list."""
    named = params.read_yaml(root / KINDS)
    whole = isinstance(named, dict) and all(
        isinstance(paths, list) and paths for paths in named.values()
    )
    if not whole or not all(isinstance(path, str) for paths in named.values() for path in paths):
        raise DataError(
            "it is not a mapping of kinds to lists of code",
            where=str(KINDS),
            remedy=f"git checkout {KINDS}",
        )
    return named


def write(named: dict[str, list[str]]) -> None:
    """Every list, all or none. DataError where a file is not there."""
    if missing := sorted(
        {path for paths in named.values() for path in paths if not Path(path).exists()}
    ):
        raise DataError(
            "it names code that is not there",
            where=str(KINDS),
            found=", ".join(missing),
            remedy="mend its name, or remove it from the list",
        )
    with files.guard("code"), records.timed("code", "all"), files.atomic_folder(HOME) as folder:
        for kind, paths in named.items():
            files.write_json(folder / f"{kind}.json", records.code_digest(paths)["files"])


def main(arguments: list[str] | None = None) -> int:
    """Write every list; the exit code."""
    argparse.ArgumentParser(
        prog="python -m stages.code", description=__doc__.partition(": ")[2]
    ).parse_args(arguments)
    try:
        write(kinds())
    except TradewindError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())

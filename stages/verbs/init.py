"""The verb that declares a data set: it looks at a file, and writes what the recipe of
CONTRIBUTING.md has one write by hand: the pinned source, the profile's lists, its split, its row in
data/README.md.
"""

import argparse
import difflib
import io
import re
from pathlib import Path
from typing import Any

from stages import files, params
from stages.errors import DataError, InputError
from stages.verbs import Verbs, added, only_in_clone

PROFILE = "sample"  # where none is named
NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")  # one of digits YAML reads as a number
LEADS = ((86_400.0, 1800), (9_000.0, 900), (3_000.0, 300))  # of data so long, seconds; the lead
EMBARGO_S = 120
PLACEHOLDER = "https://zenodo.org/records/0/files/"
ENTERS = ("frames", "states", "winds")


def init(arguments: argparse.Namespace) -> int:
    """Print what a file holds and declare it as a data set."""
    from stages.verbs import advice, looks

    path = Path(arguments.file)
    if arguments.name is not None or arguments.profile != PROFILE:
        refuse_misnamed(arguments.name, arguments.profile)  # whatever the file turns out to be
    seen = looks.look(path)
    print(looks.render(path, seen))
    if seen.kind not in (*ENTERS, "text"):
        raise InputError(
            "nothing was declared",
            where=str(path),
            expected="frames, winds, published states, or a text",
            found=f"{seen.kind} ({next(iter(seen.notes))})" if seen.notes else seen.kind,
            remedy=advice.instead(path, seen),
        )
    if seen.doubts and not arguments.in_spite_of_doubts:
        raise InputError(
            "the values look like another unit's",
            where=str(path),
            found="; ".join(seen.doubts),
            remedy="mend the file, or add --in-spite-of-doubts",
        )
    only_in_clone("nothing can be declared here")
    name = arguments.name or looks.name_of(path)
    refuse_misnamed(name, arguments.profile)
    edits = edited(path, name, arguments, seen)
    if arguments.dry_run:
        print("", *(line for edit in edits.items() for line in diff(*edit)), sep="\n")
        return 0
    write(edits)
    print(f"\n{name} is declared in {', '.join(map(str, edits))}. Next:\n")
    entry = "sequences" if seen.kind == "text" else seen.kind
    print(advice.following(name, arguments.profile, path.absolute().parent, entry))
    if arguments.url is None:
        print(
            f"\nThe file's address is a placeholder ({PLACEHOLDER}...); it is taken from a folder"
        )
        print("by its digest (TRADEWIND_MIRROR). Name where others find it with --url.")
    return 0


def refuse_misnamed(name: str | None, profile: str) -> None:
    """InputError for a name that no new data set can have, and a profile that there is not."""
    if name is not None and not NAME.fullmatch(name):
        raise InputError(
            "that is no name of a data set",
            found=name,
            expected="small letters, digits and _, at most 40, the first a letter",
            remedy="give another --name",
        )
    known = params.load()
    if name in known.datasets:
        raise InputError("a data set has that name already", found=name, remedy="give a --name")
    if profile not in known.profiles:
        raise InputError(
            "there is no such profile", found=profile, expected=", ".join(known.profiles)
        )


def edited(
    path: Path, name: str, asked: argparse.Namespace, seen: Any
) -> dict[Path, tuple[str, str]]:
    """Every file that the declaration touches: its text before and after."""
    text = seen.kind == "text"
    home, budgets = Path("stages/params"), Path("stages/params/budgets") / asked.profile
    family = "sequences.yaml" if text else "winds.yaml"
    kept = f"{name}{'.txt' if text else suffix(path, seen.kind)}"
    source = declaration(path, name, kept, asked, "sequences" if text else seen.kind)
    made = {home / "datasets" / family: lambda old: f"{old.rstrip()}\n\n{source}"}
    lists = ("sequences",) if text else ("datasets", "acquired", "wind")
    made[Path("params.yaml")] = lambda old: listed(old, asked.profile, lists, name)
    made[budgets / family] = lambda old: budgeted(old, name, seen)
    told = (f"`{name}`", asked.profile, "sequences" if text else seen.kind, path.name)
    row = tabular(*told, asked.licence, units(seen), f"{path.stat().st_size:,} B")
    made[Path("data/README.md")] = lambda old: tabled(old, row)
    return {file: (old := file.read_text("utf-8"), change(old)) for file, change in made.items()}


def suffix(path: Path, kind: str) -> str:
    """The end of a raw file's name, by which decode knows a file of frames or a table."""
    from stages.winds.decoding import readers
    from stages.winds.modes import frames

    own = re.search(r"(\.\w+?)(\.gz)?$", path.name.lower())
    known = frames.SUFFIXES if kind == "frames" else readers.SUFFIXES
    return own[0] if own and own[1] in known else ".csv"


def declaration(path: Path, name: str, kept: str, asked: argparse.Namespace, entry: str) -> str:
    """The data set's own entry: one pinned file."""
    from ruamel.yaml import YAML

    pinned = {
        "url": asked.url or PLACEHOLDER + kept,
        "sha256": files.sha256(path),
        "bytes": path.stat().st_size,
        "licence": asked.licence,
    }
    writer, text = YAML(), io.StringIO()
    writer.width = 1 << 16  # a line a value
    writer.dump({name: {"entry": entry, "kind": "files", "files": {kept: pinned}}}, text)
    return text.getvalue()


def tabular(*cells: str) -> str:
    """A row of a Markdown table: a bar in a cell is escaped, lines are one."""
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |"


def units(seen: Any) -> str:
    """The units of a file, each once."""
    if seen.kind in ("frames", "text"):
        return {"frames": "hex Mode-S frames, seconds", "text": "letters"}[seen.kind]
    return "; ".join(dict.fromkeys(one.unit for one in seen.columns if one.unit))


def listed(text: str, profile: str, lists: tuple[str, ...], name: str) -> str:
    """params.yaml with the name at the end of a profile's lists."""
    head, start, rest = text.partition(f"\n  {profile}: &{profile}")
    block, end, tail = rest.partition("\n\n")
    for key in lists:
        old = re.search(rf"(?m)^    {key}: \[(.*?)\]", block)
        if not start or old is None:
            raise DataError(
                "a profile has no such list",
                where="params.yaml",
                expected=f"{profile}.{key}: [...]",
            )
        inside = f"{old[1]}, {name}" if old[1] else name
        block = f"{block[: old.start()]}    {key}: [{inside}]{block[old.end() :]}"
    return head + start + block + end + tail


def budgeted(text: str, name: str, seen: Any) -> str:
    """What the profile affords of it: a split that is laid over its span; of a text letters."""
    if seen.kind == "text":
        reading = f"  {name}: {{reader: text, level: character, length: 128}}\n"
        budget = (
            f"  {name}: {{steps: 1500, validate_every: 250, patience: 100, batch: 32, "
            "learning_rate: 3.0e-3, schedule: cosine}\n"
        )
        return after(after(text, "readings", reading), "learning_orders", budget)
    if seen.kind == "frames" and not seen.rows:
        placeless = "no_position" in seen.notes[0]
        raise InputError(
            "no wind comes of the frames"
            + (": no aircraft tells its position beside its replies" if placeless else ""),
            expected="Comm-B replies (registers 5,0 and 6,0) and positions of the same aircraft",
            found=seen.notes[0],
            remedy="give a capture that holds both, DF 17 and DF 20 or 21",
        )
    return after(text, "prepare", split(name, seen.span_s))


def split(name: str, span_s: tuple[float, float] | None) -> str:
    """The slices and the split of winds from first to last second. InputError for a span that is
    too short for a lead and three parts."""
    length = span_s[1] - span_s[0] if span_s else 0.0
    lead = next((lead for least, lead in LEADS if length >= least), None)
    if lead is None:
        raise InputError(
            "there are too few data to train, select and test on",
            expected=f"{LEADS[-1][0] / 60:.0f} minutes or more",
            found=f"{length / 60:.1f} minutes",
            remedy="give a longer file; a short one is a context of `tradewind nowcast`",
        )
    test, val = (max(120, 60 * int(share * length / 60)) for share in (0.2, 0.08))
    return (
        f"  {name}:\n    slice_s: 60\n    lead_s: {lead}\n    embargo_s: {EMBARGO_S}\n"
        f"    rolling: {{test_s: {test}, val_s: {val}}}\n"
    )


def after(text: str, key: str, lines: str) -> str:
    """A YAML text with lines at the beginning of a key's mapping."""
    found = re.search(rf"(?m)^{key}:.*\n", text)
    if found is None:
        return f"{text.rstrip()}\n{key}:\n{lines}"
    return text[: found.end()] + lines + text[found.end() :]


def tabled(text: str, row: str) -> str:
    """data/README.md with a row at the end of its table of data sets."""
    rows = list(re.finditer(r"(?m)^\| `.*\|$", text.partition("\n| folder |")[0]))
    at = rows[-1].end() if rows else len(text)
    return f"{text[:at]}\n{row}{text[at:]}"


def diff(file: Path, texts: tuple[str, str]) -> list[str]:
    """What an edit changes, as a unified diff without context."""
    old, new = (text.splitlines() for text in texts)
    return list(difflib.unified_diff(old, new, str(file), str(file), n=0, lineterm=""))


def write(edits: dict[Path, tuple[str, str]]) -> None:
    """Write all of them; where the parameters are then wrong, none. ParamsError."""
    try:
        for file, (_, new) in edits.items():
            with files.atomic_file(file, "w") as stream:
                stream.write(new)
        params.load()
    except BaseException:
        for file, (old, _) in edits.items():
            with files.atomic_file(file, "w") as stream:
                stream.write(old)
        raise


def register(verbs: Verbs) -> None:
    """Add `tradewind init`."""
    verb = added(
        verbs,
        "init",
        "a file of your own, declared as a data set",
        "Looks at a file (frames, states, winds, a text, arrays, a table), prints its columns, "
        "units and span,\nand declares it as a data set of the project: the pinned file, the "
        "profile's lists, its split, its row in\ndata/README.md. Values that look like another "
        "unit's are told.",
        "tradewind init capture.csv --dry-run",
    )
    verb.add_argument("file", metavar="DATA_FILE")
    verb.add_argument("--name", metavar="NAME", help="of the data set; default: the file's")
    verb.add_argument("--profile", default=PROFILE, help="which has it; default: %(default)s")
    verb.add_argument("--licence", default="your own", metavar="TEXT", help="default: %(default)s")
    verb.add_argument("--url", metavar="URL", help="where others find the file, https")
    verb.add_argument("--dry-run", action="store_true", help="print the edits, and make none")
    verb.add_argument(
        "--in-spite-of-doubts", action="store_true", help="declare it whatever its values look like"
    )
    verb.set_defaults(run=init)

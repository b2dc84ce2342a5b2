"""The champions: every cell that was promoted, each in data/PROFILE/champions/<first 12 digits of
its weights' SHA-256>/.

A folder holds the cell's weights.safetensors and history.json and `reference.json`: the SHA-256 of
both, what its training saw (the times until which it was trained and selected, summaries of its
training rows for drift.py, state of the raw data, commit) and the errors by which it won. It is
written once and never changed; DVC keeps the store (data/PROFILE/champions.dvc). The ledger holds
the SHA-256 of weights and reference, and nobody uses a champion whose bytes are others. Times are
Unix seconds, errors m/s and kn.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stages import files, records
from stages.errors import DataError, InputError, IntegrityError
from stages.params import Params
from stages.winds.retraining import ledger

if TYPE_CHECKING:
    from torch import nn

WEIGHTS, HISTORY, REFERENCE = "weights.safetensors", "history.json", "reference.json"


@dataclass(frozen=True)
class Champion:
    """A verified champion: its folder, the SHA-256 of its weights, the model, its checkpoint's
    metadata, its reference."""

    folder: Path
    sha256: str
    net: "nn.Module"
    meta: dict[str, Any]
    reference: dict[str, Any]


def store_of(parameters: Params) -> Path:
    """Where the champions lie."""
    return Path("data", parameters.retraining.profile, "champions")


def place(store: Path, sha256: str) -> Path:
    """The folder of a champion."""
    return store / sha256[:12]


def remedy(store: Path) -> str:
    """What brings the bytes back."""
    return f"`dvc pull {store}` (or `dvc checkout {store} --force`)"


def keep(cell: Path, store: Path, reference: dict[str, Any]) -> Path:
    """Put a trained cell and its reference into the store, whole or not at all; returns its folder.

    One that is there already stays as it is. IntegrityError where its weights or history are not
    those of the cell.
    """
    hashes = {name: files.sha256(cell / name) for name in (WEIGHTS, HISTORY)}
    folder = place(store, hashes[WEIGHTS])
    if folder.exists():
        if check_files(folder, store) != hashes:
            raise IntegrityError(
                "the store holds another cell under this name",
                where=str(folder),
                remedy=remedy(store),
            )
        return folder
    with files.atomic_folder(folder) as temporary:
        for name in hashes:
            shutil.copyfile(cell / name, temporary / name)
        files.write_json(temporary / REFERENCE, {**reference, "files": hashes})
        if {name: files.sha256(temporary / name) for name in hashes} != hashes:
            raise IntegrityError(
                "the cell changed while it was copied",
                where=str(cell),
                remedy="judge again when its training has ended",
            )
    return folder


def check_files(folder: Path, store: Path) -> dict[str, str]:
    """The hashes that a champion's reference names, after hashing both files anew.
    IntegrityError for what is missing or differs."""
    missing = [name for name in (WEIGHTS, HISTORY, REFERENCE) if not (folder / name).is_file()]
    if missing:
        raise IntegrityError(
            "a champion is not in the store",
            where=str(folder),
            found=f"no {', '.join(missing)}",
            remedy=remedy(store),
        )
    told = files.read_json(folder / REFERENCE).get("files", {})
    for name in (WEIGHTS, HISTORY):
        found = files.sha256(folder / name)
        if found != told.get(name):
            raise IntegrityError(
                "a champion's bytes are not those that were promoted",
                where=str(folder / name),
                found=found,
                expected=str(told.get(name)),
                remedy=remedy(store),
            )
    return told


def verify(store: Path, sha256: str, reference: str) -> Champion:
    """The champion of these hashes (of its weights and its reference.json, as the ledger has them),
    all hashed anew, and loaded.

    IntegrityError for bytes that are missing, others, or no model of ours.
    """
    from stages.training import store as checkpoints  # torch: only for those who load one

    folder = place(store, sha256)
    told = check_files(folder, store)
    for name, expected, found in (
        (WEIGHTS, sha256, told[WEIGHTS]),
        (REFERENCE, reference, files.sha256(folder / REFERENCE)),
    ):
        if found != expected:
            raise IntegrityError(
                "a champion's bytes are not those of the ledger",
                where=str(folder / name),
                expected=expected,
                found=found,
                remedy=remedy(store),
            )
    try:
        net, meta = checkpoints.load(str(folder / WEIGHTS))
    except DataError as error:
        raise IntegrityError(
            "a champion cannot be loaded",
            where=error.where,
            expected=error.expected,
            found=error.found,
            remedy=remedy(store),
        ) from None
    return Champion(folder, sha256, net, meta, files.read_json(folder / REFERENCE))


def current(parameters: Params) -> Champion | None:
    """The champion now, verified; None where nothing was promoted yet."""
    entries = ledger.read()
    return (
        verify(store_of(parameters), entries[-1]["after"], entries[-1]["reference"])
        if ledger.after(entries)
        else None
    )


def folder_now(parameters: Params) -> Path:
    """The verified champion's folder, for those who need one. InputError where there is none."""
    found = current(parameters)
    if found is None:
        raise InputError(
            "there is no champion yet",
            where=str(ledger.LEDGER),
            remedy="`make schedule` promotes one, or name a cell with --model",
        )
    return found.folder


def promotion(entries: list[ledger.Entry], sha256: str) -> ledger.Entry:
    """The last entry that promoted these weights."""
    return next(
        entry
        for entry in reversed(entries)
        if entry["kind"] == "promoted" and entry["after"] == sha256
    )


def since(entries: list[ledger.Entry]) -> ledger.Entry:
    """The entry by which the champion now became it: a promotion or a rollback."""
    return next(entry for entry in reversed(entries) if entry["after"] != entry["before"])


def describe(parameters: Params) -> str | None:
    """Who is champion, since when, by which numbers, for a person; None where nothing was
    promoted yet. The bytes are verified."""
    found, entries = current(parameters), ledger.read()
    if found is None:
        return None
    won, began, meta = promotion(entries, found.sha256), since(entries), found.meta
    errors = won["rmse_component_kn"]
    chosen = won["evaluation"]

    def utc(s):
        return ledger.dt.datetime.fromtimestamp(s, ledger.dt.UTC)

    lines = [
        (
            f"champion    {found.sha256[:12]}: {meta['model']}, arm {meta['arm']}, size "
            f"{meta['size']}, seed {meta['seed']}"
        ),
        f"since       {began['time']} (ledger entry {began['number']}, {began['kind']})",
        f"promoted    ledger entry {won['number']}, commit {won['commit'][:12]}",
        (
            "trained     on targets until "
            f"{utc(found.reference['trained_until_s']):%Y-%m-%d %H:%M} UTC, selected until "
            f"{utc(found.reference['selected_until_s']):%H:%M}"
        ),
        (
            f"error       {errors['challenger']:.2f} kn RMSE per component; {won['against']} "
            f"{errors['against']:.2f} kn on the same {chosen['slices']} slices"
        ),
        f"difference  {ledger.spread(won['difference_kn'])} kn, 90 % interval",
        f"verified    weights sha256 {found.sha256}",
        f"folder      {found.folder}",
    ]
    return "\n".join(lines)


def verified(parameters: Params) -> str:
    """Check the ledger's chain, that it continues the committed one, and every champion it
    names; a sentence. IntegrityError otherwise."""
    entries = ledger.read()
    ledger.check_committed()
    named = {entry["after"]: entry["reference"] for entry in entries if entry["after"]}
    for sha256, reference in named.items():
        verify(store_of(parameters), sha256, reference)
    return (
        f"verified: the chain is unbroken (entries: {len(entries)}) and the champions are those "
        f"promoted (re-hashed and loaded: {len(named)})"
    )


def earlier(entries: list[ledger.Entry], present: str, number: int | None) -> str:
    """The champion as it was after entry `number`, or, for None, the one that the present one
    replaced when promoted. InputError where there was none."""
    if number is None:
        wanted = promotion(entries, present)["before"]
        if not wanted:
            raise InputError(
                "the present champion is the first there was",
                where=str(ledger.LEDGER),
                found=present[:12],
                remedy="there is nothing to go back to",
            )
    elif not 1 <= number <= len(entries):
        raise InputError(
            "the ledger has no such entry",
            where=str(ledger.LEDGER),
            expected=f"1 to {len(entries)}",
            found=str(number),
        )
    else:
        wanted = entries[number - 1]["after"]
        if not wanted:
            raise InputError(
                "there was no champion at that entry", where=f"{ledger.LEDGER}, line {number}"
            )
    return wanted


def rollback(parameters: Params, number: int | None = None) -> ledger.Entry:
    """Make an earlier champion the champion again: that of entry `number`, or the one which the
    present one replaced when promoted.

    Its bytes are hashed and loaded before the ledger says so. InputError for a champion that is
    none or is there already; IntegrityError where its bytes are not what they were; BusyError while
    one is judged.
    """
    with files.guard("retraining-judge"):  # one that judges would undo it, or be undone
        entries = ledger.read()
        present = ledger.after(entries)
        if not present:
            raise InputError("there is no champion to roll back from", where=str(ledger.LEDGER))
        wanted = earlier(entries, present, number)
        if wanted == present:
            raise InputError(
                "that one is the champion now",
                where=str(ledger.LEDGER),
                found=present[:12],
                remedy="see `tradewind ledger`",
            )
        source = promotion(entries, wanted)
        verify(store_of(parameters), wanted, source["reference"])
        commit, dirty = ledger.tree(parameters.retraining.profile)
        return ledger.append(
            {
                "kind": "rollback",
                "case": records.key("rollback", len(entries), wanted),
                "raw": "",
                "commit": commit,
                "dirty": dirty,
                "challenger": "",
                "before": present,
                "after": wanted,
                "reference": source["reference"],
                "reasons": [
                    (
                        f"Rolled back by hand from {present[:12]} to {wanted[:12]}, promoted by "
                        f"entry {source['number']}."
                    )
                ],
                "recheck": ["tradewind ledger --verify"],
            }
        )

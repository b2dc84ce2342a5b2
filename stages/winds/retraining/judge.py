"""The judgement of a retraining run: drift, challenger against champion, and one entry in the
ledger for one state of the raw data.

Everything is checked against the bytes on disk first: the challengers must come from the prepared
data, these from the decoded, these from the raw captures as they are now. Of several challengers
the validation slices choose one (selection.py). Promoted is a challenger whose error lies below the
champion's (of the first, below that of `retraining.first_against`) with its whole 90 % interval,
from a clean commit, on data whose distribution the training data resemble. All else is refused,
with every reason. A kill at any moment leaves no entry or the whole one; a second call for the same
state adds none. Errors are RMSE per component in kn, times Unix seconds.
"""

from pathlib import Path
from typing import Any

from stages import files, records
from stages.errors import DataError
from stages.params import Params
from stages.scores import runs
from stages.winds.retraining import champions, compare, drift, ledger, selection
from stages.winds.retraining.captures import state_of
from stages.winds.retraining.place import Place, Side, belongs, loaded

TOLD = (
    "dataset",
    "profile",
    "t0_s",
    "slice_s",
    "lead_s",
    "split",
    "scaler",
    "area",
    "rows",
)  # of prepared.json, in a champion's reference
COMPARED = ("rmse_component_kn", "difference_kn", "evaluation", "against")  # of an entry
VERDICT, INTAKE = (
    Path("retraining/verdict.json"),
    Path("retraining/intake.json"),
)  # in the work folder


def run(parameters: Params) -> dict[str, Any]:
    """Judge the challenger once for this state of the raw data; returns (and keeps in
    .work/retraining/verdict.json) what came of it.

    `due` is False where the ledger had judged this state before. ParamsError for an unknown
    statistic of drift; IntegrityError for a ledger, champion or challenger that is not what was
    recorded; BusyError while another judges.
    """
    drift.check(parameters.retraining.drift)
    place = Place.of(parameters)
    with files.guard("retraining-judge"):
        entries = ledger.read()
        ledger.check_committed()
        raw = state_of(place.raw)
        entry = ledger.of_raw(entries, raw)
        fresh = entry is None
        if fresh:
            fields = judged(place, parameters, raw, entries)
            files.fault("before_ledger")
            entry = ledger.append(fields)
            files.fault("after_ledger")
        told = {
            "due": fresh,
            "verdict": entry["kind"],
            **{
                key: entry[key]
                for key in ("number", "raw", "challenger", "before", "after", "reasons")
            },
        }
        files.write_json(files.WORK / VERDICT, told)
        return told


def judged(place: Place, parameters: Params, raw: str, entries: list[ledger.Entry]) -> ledger.Entry:
    """The fields of the entry. Writes the drift report and, of a challenger that won, its folder
    in the store of champions."""
    asked = parameters.retraining
    champion = champions.current(parameters)
    belongs(place, *asked.challengers, *([] if champion else [asked.first_against]))
    data = compare.Prepared.open(place.prepared)
    chosen, table = selection.choose(place, parameters, data)
    sha256 = files.sha256(place.cell(chosen) / champions.WEIGHTS)
    trained = files.read_json(list(place.records(chosen))[-1])
    commit, dirty = ledger.tree(place.profile)
    reasons = unclean(commit, dirty)
    summaries = drift.reference(watched(data, data.of("train")))
    drifted = drifting(parameters, data, champion, summaries)
    files.write_json(place.drift, drifted | {"raw": raw})
    if drifted["broken"]:
        far = ", ".join(drifted["broken"])
        reasons.append(f"The new rows lie far from the training rows: {far}.")
    before = champion.sha256 if champion else ""
    found: dict[str, Any] = {}
    if sha256 == before:
        reasons.append("The challenger is the champion: the same weights.")
    else:
        found, more = compared(place, parameters, data, champion, chosen)
        reasons += more
    won = not reasons and found["better"]
    reference = entries[-1]["reference"] if entries else ""
    if won:
        about = {
            "cell": chosen,
            "raw": raw,
            "commit": commit,
            "columns": summaries,
            "measured": found.pop("errors_m_s"),
            "code": trained["code"]["digest"],
        }
        reference = kept(parameters, place.cell(chosen), data, about)
    return {
        "kind": "promoted" if won else "refused",
        "case": records.key("judge", raw, sha256, before, trained["code"]["digest"]),
        "raw": raw,
        "commit": commit,
        "dirty": dirty,
        "captures": captures(raw),
        "challenger": sha256,
        "before": before,
        "after": sha256 if won else before,
        "reference": reference,
        "cell": chosen,
        "challengers": table,
        "margin_kn": asked.margin_kn,
        "drift": {
            name: drifted[name] for name in ("state", "against", "drifted", "broken", "rows")
        },
        **{key: found[key] for key in COMPARED if key in found},
        "reasons": ([] if won else reasons)
        + ([verdict(found, asked.margin_kn)] if "difference_kn" in found else []),
        "recheck": recheck(place, parameters, chosen),
    }


def kept(parameters: Params, cell: Path, data: compare.Prepared, about: dict[str, Any]) -> str:
    """A challenger that won, put into the store of champions; the SHA-256 of its reference."""
    store = champions.store_of(parameters)
    told = {
        "trained_until_s": data.until("train"),
        "selected_until_s": data.until("val"),
        **about,
        "prepared": {name: data.meta[name] for name in TOLD},
    }
    return files.sha256(champions.keep(cell, store, told) / champions.REFERENCE)


def recheck(place: Place, parameters: Params, chosen: str) -> list[str]:
    """The commands by which an entry is checked again."""
    experiment, _, name = chosen.partition("/")
    cell = f"{experiment}/{place.profile}/{place.dataset}/{name}"
    return [
        "tradewind ledger --verify",
        f"dvc pull {champions.store_of(parameters)}.dvc {place.raw}.dvc",
        f"tradewind audit {cell}/rmse_component_kn --verify eval",
    ]


def unclean(commit: str, dirty: list[str]) -> list[str]:
    """Sentences on what keeps the commit from telling the code: no commit, or tracked files that
    differ from it."""
    if not commit:
        return ["There is no commit that could tell which code trained the challenger."]
    more = f" and {len(dirty) - 5} more" if len(dirty) > 5 else ""
    return [f"Tracked files differ from the commit: {', '.join(dirty[:5])}{more}."] if dirty else []


def watched(data: compare.Prepared, rows: Any) -> drift.Columns:
    """The columns that drift looks at, of some rows."""
    return drift.columns(
        data.t_s[rows],
        {name: column[rows] for name, column in data.columns.items()},
        data.meta["slice_s"],
    )


def drifting(
    parameters: Params,
    data: compare.Prepared,
    champion: champions.Champion | None,
    summaries: dict[str, Any],
) -> dict[str, Any]:
    """Rows later than the champion's training (if none, the test rows) against its training
    rows; without a champion the challenger's."""
    known, until_s, against = summaries, data.until("train"), "the challenger's own training"
    if champion:
        known = champion.reference["columns"]
        until_s = champion.reference["trained_until_s"]
        against = champion.sha256
    rows = data.rows(until_s)
    new = watched(data, rows if rows.stop > rows.start else data.of("test"))
    return drift.compare(known, new, parameters.retraining.drift) | {"against": against}


def compared(
    place: Place,
    parameters: Params,
    data: compare.Prepared,
    champion: champions.Champion | None,
    cell: str,
) -> tuple[dict[str, Any], list[str]]:
    """The comparison's numbers, as far as it could be made, and every reason against a promotion
    that is not the numbers' own."""
    from stages.batches import device

    least, where = max(runs.RUNS, parameters.retraining.slices_least), str(device())
    first, margin_kn = parameters.retraining.first_against, parameters.retraining.margin_kn
    compare.torch.set_num_threads(parameters.training.threads)
    try:
        challenger = loaded(place, "challenger", cell)
    except DataError as error:
        return {}, [f"The challenger cannot be used: {error.what} ({error.found})."]
    against = (
        Side("champion", champion.net, champion.meta)
        if champion
        else loaded(place, first.partition("/")[2], first)
    )
    known = champion.reference if champion else {}
    ends = (known.get(name, 0.0) for name in ("trained_until_s", "selected_until_s"))
    seen = max(data.until("train"), data.until("val"), *ends)
    chosen = compare.evaluation(data, seen)
    found: dict[str, Any] = {
        "against": against.name,
        "evaluation": {
            "hash": chosen.hash,
            "slices": len(chosen.numbers),
            "rows": len(chosen.row),
            "seen_until_s": seen,
        },
    }
    reasons = compare.unlike({side.name: side.meta for side in (challenger, against)}, data)
    if len(chosen.numbers) < least:
        reasons.append(
            f"Undecided: {len(chosen.numbers)} test slices that neither was trained on, fewer than "
            f"{least}."
        )
    if reasons:
        return found, reasons
    given: Any = []
    for side in (challenger, against):
        answers, more = compare.asked(
            side.name, side.net, side.meta, data, chosen, parameters.contexts, where
        )
        given.append(answers)
        reasons += more
    if reasons:
        return found, reasons
    found |= compare.decide(*given, data, chosen, margin_kn)
    found["errors_m_s"] = compare.errors_m_s(given[0], data)
    return found, compare.indifferent(given[0], data, chosen)


def verdict(found: dict[str, Any], margin_kn: float) -> str:
    """The comparison as a sentence."""
    errors, by = found["rmse_component_kn"], found["difference_kn"]
    bar = f"{-margin_kn:g} kn" if margin_kn else "zero"
    where = (
        f"wholly below {bar}"
        if found["better"]
        else f"wholly above {bar}"
        if by["low"] > -margin_kn
        else f"not wholly below {bar}"
    )
    return (
        f"The challenger errs by {errors['challenger']:.2f} kn, the {found['against']} by "
        f"{errors['against']:.2f} kn: the difference {ledger.spread(by)} kn lies {where}."
    )


def captures(raw: str) -> dict[str, Any]:
    """What the last round took in and put aside, if its report is of this state of the raw
    data; {} if not."""
    path = files.WORK / INTAKE
    told = files.read_json(path) if path.exists() else {}
    if told.get("raw") != raw:
        return {}
    brief = ("name", "sha256", "reasons")
    return {
        "count": told["captures"],
        **{
            name: [{key: one[key] for key in brief if key in one} for one in told[name]]
            for name in ("accepted", "quarantined")
        },
    }

"""The gate: rules, their judgement by Great Expectations, and what happens then.

A rule bounds one column of a small summary table. GX 1.24 judges it on pandas in an ephemeral
context. Three traps of GX are closed here: an error inside GX comes back as
success=False (told apart, JudgeError); nulls are skipped and an empty table passes (both fail
here). Warnings are recorded; a critical failure removes the gate file, so nothing downstream can
run.
"""

from pathlib import Path
from typing import Any

import great_expectations as gx
import great_expectations.expectations as gxe
import polars as pl
from great_expectations.data_context.types.base import ProgressBarsConfig

from stages import files
from stages.errors import GateError, JudgeError
from stages.validation import reduce
from stages.validation.rules import Rule, Table

SHOWN = 10  # places named per result


def expectation(rule: Rule) -> gxe.Expectation:
    """A rule in GX's words."""
    if rule.allowed is not None:
        return gxe.ExpectColumnDistinctValuesToEqualSet(
            column=rule.column, value_set=list(rule.allowed), meta={"rule": rule.key}
        )
    return gxe.ExpectColumnValuesToBeBetween(
        column=rule.column, min_value=rule.low, max_value=rule.high, meta={"rule": rule.key}
    )


def judge(
    tables: dict[str, Table], rules: list[Rule]
) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
    """Results of all rules whose table is there, in the rules' order, and GX's own errors apart."""
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    source = context.data_sources.add_pandas("summaries")
    verdicts: dict[str, Any] = {}
    for name in dict.fromkeys(rule.table for rule in rules if rule.table in tables):
        batches = source.add_dataframe_asset(name).add_batch_definition_whole_dataframe(name)
        batch = batches.get_batch(
            batch_parameters={
                "dataframe": pl.DataFrame(tables[name].rows, infer_schema_length=None).to_pandas()
            }
        )
        suite = gx.ExpectationSuite(
            name=name, expectations=[expectation(rule) for rule in rules if rule.table == name]
        )
        for verdict in batch.validate(suite, result_format="BASIC").results:
            verdicts[verdict.expectation_config.meta["rule"]] = verdict
    results, internal = [], []
    for rule in rules:
        if rule.table in tables:
            verdict = verdicts.get(rule.key)
            error = "GX returned no result" if verdict is None else internal_error(verdict)
            if error:
                internal.append({"name": rule.name, "severity": rule.severity, "error": error})
            else:
                results.append(result(rule, tables[rule.table], verdict))
    return results, internal


def internal_error(verdict: Any) -> str:
    """GX's own error behind a verdict, or nothing. It hides in exception_info, flat or one level
    down."""
    info = verdict.exception_info or {}
    for part in [info, *(value for value in info.values() if isinstance(value, dict))]:
        if part.get("raised_exception"):
            return str(part.get("exception_message"))
    return "" if verdict.result else "GX gave a verdict without a result"


def result(rule: Rule, table: Table, verdict: Any) -> dict[str, Any]:
    """One expectation in the gate's file. What GX lets pass for want of values fails here."""
    values = [row.get(rule.column) for row in table.rows]
    there = [value for value in values if value is not None]
    success = bool(verdict.success) and len(there) == len(values) > 0
    if rule.allowed is not None:
        observed: Any = sorted(there)
        places = sorted(set(there) ^ set(rule.allowed))
    else:
        ends = [float(pick(there)) for pick in (min, max)] if there else [None, None]
        observed = (
            ends[1]
            if rule.low is None
            else ends[0]
            if rule.high is None or ends[0] == ends[1]
            else ends
        )

        def within(x):
            return (
                x is not None
                and (rule.low is None or x >= rule.low)
                and (rule.high is None or x <= rule.high)
            )

        places = [
            str(row[table.key])
            for row, value in zip(table.rows, values, strict=True)
            if not within(value)
        ]
    found = (
        []
        if success or rule.rows is None
        else [reduce.examples(lazy, rule.rows) for lazy in table.behind(places)]
    )
    count, shown = sum(n for n, _ in found), [row for _, rows in found for row in rows][:SHOWN]
    return {
        "name": rule.name,
        "table": rule.table,
        "column": rule.column,
        "severity": rule.severity,
        "success": success,
        "observed": observed,
        "limit": rule.limit,
        "where": [] if success else places[:SHOWN],
        "rows": count,
        "examples": shown,
        "remedy": rule.remedy,
    }


def verdict_of(
    profile: str,
    dataset: str,
    results: list[dict[Any, Any]],
    internal: list[dict[Any, Any]],
    judged: dict[str, str],
) -> dict[str, Any]:
    """The gate's file: every expectation, what failed, what warned, and the SHA-256 of each file
    that was judged."""

    def failed(severity):
        return [r["name"] for r in results if r["severity"] == severity and not r["success"]]

    critical = failed("critical")
    return {
        "dataset": dataset,
        "profile": profile,
        "success": not critical and not internal,
        "critical_failed": critical,
        "warnings": failed("warning"),
        "expectations": results,
        "internal_errors": internal,
        "judged": judged,
    }


def decide(verdict: dict[str, Any], gate: Path) -> None:
    """Open the gate (write its file) or shut it (remove it) and say why; the results are kept in
    .work/validation either way.

    JudgeError when GX itself failed: the data are then neither good nor bad. GateError names rule,
    rows and remedy.
    """
    copy = files.WORK / "validation" / f"{verdict['profile']}-{verdict['dataset']}.json"
    files.write_json(copy, verdict)
    if verdict["success"]:
        files.write_json(gate, verdict)
        return
    gate.unlink(missing_ok=True)
    if verdict["internal_errors"]:
        raise JudgeError(
            "Great Expectations could not judge the data",
            where=str(gate),
            remedy=f"see {copy}; this is not a fault of the data",
            found="; ".join(f"{e['name']}: {e['error']}" for e in verdict["internal_errors"]),
        )
    broken = [
        r for r in verdict["expectations"] if r["severity"] == "critical" and not r["success"]
    ]
    raise GateError(
        f"{len(broken)} critical rule(s) failed: {', '.join(r['name'] for r in broken)}",
        where=f"{gate} (not written; see {copy})",
        expected="; ".join(f"{r['name']} {r['limit']}" for r in broken),
        found="; ".join(map(found_text, broken)),
        remedy="; ".join(dict.fromkeys(r["remedy"] for r in broken)),
    )


def found_text(r: dict[str, Any]) -> str:
    """What a broken rule saw: the number, the places, the first rows."""
    text = (
        f"{r['name']} {r['observed']}"
        if not r["where"]
        else f"{r['name']} {r['observed']} in {', '.join(r['where'])}"
    )
    rows = ", ".join(f"{e['file']} record {e['record']}" for e in r["examples"])
    return (
        f"{text} ({r['rows']} rows: {rows}{', ...' if r['rows'] > len(r['examples']) else ''})"
        if rows
        else text
    )

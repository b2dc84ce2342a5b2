"""Great Expectations' own data docs of the gates (`tradewind gates`): a static site, a page a data
set, made from the verdicts that git keeps (data/PROFILE/validated/DATASET.json).

A verdict tells every expectation with its bound and what was observed; here it is put into GX's
form again and drawn by GX's own renderer. Nothing is judged anew, so the site needs no data. A rule
is named by its notes: its name, severity and remedy.
"""

import contextlib
import logging
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import great_expectations as gx
from great_expectations.core import (
    ExpectationSuiteValidationResult,
    ExpectationValidationResult,
    RunIdentifier,
)
from great_expectations.data_context.types.base import ProgressBarsConfig
from great_expectations.data_context.types.resource_identifiers import (
    ExpectationSuiteIdentifier,
    ValidationResultIdentifier,
)
from great_expectations.expectations.expectation_configuration import ExpectationConfiguration
from great_expectations.expectations.metadata_types import FailureSeverity
from great_expectations.render.renderer import site_builder

from stages.errors import InputError
from stages.files import read_json

SITE = "gates"
WHEN = datetime(2000, 1, 1, tzinfo=UTC)  # verdicts have no clock, and GX's form asks for one
BOUNDS = re.compile(r"at least (?P<low>\S+)|at most (?P<high>\S+)|(?P<from>\S+) to (?P<to>\S+)")


def build(folder: Path, root: Path) -> tuple[Path, int]:
    """Write the site into `folder`; its first page and the number of gates. InputError where no
    gate was written."""
    gates = [read_json(path) for path in sorted((root / "data").glob("*/validated/*.json"))]
    if not gates:
        raise InputError(
            "there is no gate to show",
            where=str(root / "data"),
            expected="data/PROFILE/validated/DATASET.json",
            remedy="run at the root of a clone, or `dvc repro` first",
        )
    folder.mkdir(parents=True, exist_ok=True)
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    for site in context.get_docs_sites_urls():
        context.delete_data_docs_site(site["site_name"])
    store = {"class_name": "TupleFilesystemStoreBackend", "base_directory": str(folder.resolve())}
    context.add_data_docs_site(
        SITE,
        {
            "class_name": "SiteBuilder",
            "store_backend": store,
            "site_index_builder": {"class_name": "DefaultSiteIndexBuilder"},
        },
    )
    for gate in gates:
        name = f"{gate['profile']}.{gate['dataset']}"
        key = ValidationResultIdentifier(
            expectation_suite_identifier=ExpectationSuiteIdentifier(name=name),
            run_id=RunIdentifier(run_name=gate["profile"], run_time=WHEN),
            batch_identifier=gate["dataset"],
        )
        context.validation_results_store.set(key, results(name, gate))
        context.suites.add(suite(name, gate))
    with errors_met():
        context.build_data_docs(site_names=[SITE])
    return folder / "index.html", len(gates)


@contextlib.contextmanager
def errors_met() -> Iterator[None]:
    """Raise the first error of a page's writing: GX prints its traceback and goes on without that
    page."""
    met: list[BaseException] = []

    def kept(_: logging.LogRecord) -> bool:
        error = sys.exc_info()[1]
        met.extend([error] if error else ())
        return error is None

    log = logging.getLogger(site_builder.__name__)
    log.addFilter(kept)
    try:
        yield
    finally:
        log.removeFilter(kept)
    if met:
        raise met[0]


def configuration(one: dict[str, Any]) -> ExpectationConfiguration:
    """A rule of a verdict in GX's words, its bound read from what the verdict tells of it."""
    notes = f"{one['name']} ({one['severity']}), table {one['table']}. Remedy: {one['remedy']}"
    told: dict[str, Any] = {"notes": notes, "severity": FailureSeverity(one["severity"])}
    found = BOUNDS.fullmatch(one["limit"])
    if found is None:  # exactly these values
        values = one["limit"].removeprefix("exactly ").split(", ")
        return ExpectationConfiguration(
            type="expect_column_distinct_values_to_equal_set",
            kwargs={"column": one["column"], "value_set": values},
            **told,
        )
    ends = found.groupdict()
    low, high = (
        None if end is None else float(end)
        for end in (ends["low"] or ends["from"], ends["high"] or ends["to"])
    )
    return ExpectationConfiguration(
        type="expect_column_values_to_be_between",
        kwargs={"column": one["column"], "min_value": low, "max_value": high},
        **told,
    )


def suite(name: str, gate: dict[str, Any]) -> gx.ExpectationSuite:
    """The expectations of a gate."""
    return gx.ExpectationSuite(
        name=name, expectations=[configuration(one).to_domain_obj() for one in gate["expectations"]]
    )


def observed(one: dict[str, Any]) -> Any:
    """What was observed, with the rows of the summary where a rule was not met."""
    return f"{one['observed']} in {', '.join(one['where'])}" if one["where"] else one["observed"]


def results(name: str, gate: dict[str, Any]) -> ExpectationSuiteValidationResult:
    """A gate's verdict as GX keeps one."""
    told = [
        ExpectationValidationResult(
            success=one["success"],
            expectation_config=configuration(one),
            result={"observed_value": observed(one)},
            exception_info={
                "raised_exception": False,
                "exception_message": None,
                "exception_traceback": None,
            },
        )
        for one in gate["expectations"]
    ]
    met = sum(one["success"] for one in gate["expectations"])
    return ExpectationSuiteValidationResult(
        success=gate["success"],
        results=told,
        suite_name=name,
        statistics={
            "evaluated_expectations": len(told),
            "successful_expectations": met,
            "unsuccessful_expectations": len(told) - met,
            "success_percent": 100 * met / len(told) if told else None,
        },
        meta={"run_id": RunIdentifier(run_name=gate["profile"], run_time=WHEN)},
    )

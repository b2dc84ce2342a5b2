"""A family's tabulation and page, run as their stages run them, within a test's own process.

That a stage loads no code beyond its closure is a property of its process, so it is not asked here.
"""

from types import ModuleType
from unittest import mock

from stages import runner
from stages.page import experiment as experiment_page
from stages.page.report import report


def tabulate(module: ModuleType, experiment: str, profile: str) -> None:
    """All files of an experiment and profile and their record; `module` is a family's tabulate."""
    asked = runner.Asked({"experiment": experiment, "profile": profile}, None)
    with mock.patch("stages.code.outside", return_value=[]):
        runner.run(module.TABULATION.work(asked, module.__name__))


def write_page(module: ModuleType, experiment: str, profile: str) -> None:
    """page.html and page.json of an experiment and profile; `module` is a family's page."""
    experiment_page.write(experiment, profile, module.part)


def write_pages(module: ModuleType, experiment: str, profile: str) -> None:
    """The page of an experiment and the front page."""
    write_page(module, experiment, profile)
    report()

"""Fixtures that several files of this folder share."""

import live_project
import pytest
from judged_project import SECONDS


@pytest.fixture(scope="session")
def template(tmp_path_factory):
    """The project before its first judgement: challenger and baseline trained."""
    root = tmp_path_factory.mktemp("judge")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        live_project.build_first(SECONDS)
    return root

"""What the tests of the flows share: a Prefect database that is migrated once a session."""

import shutil
from collections.abc import Callable
from pathlib import Path

import made_once
import pytest


@pytest.fixture(scope="session")
def migrated(tmp_path_factory) -> Callable[..., None]:
    """Puts the database of Prefect's home in a folder (the current one), where a server or a flow
    that is started there finds it."""
    made = made_once.shared(tmp_path_factory.getbasetemp(), "prefect", made_once.prefect_home)

    def place(folder: Path = Path(".")) -> None:
        (folder / ".work/prefect").mkdir(parents=True, exist_ok=True)
        shutil.copy(made / "prefect.db", folder / ".work/prefect/prefect.db")

    return place

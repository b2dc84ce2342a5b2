"""What the flows need of params.yaml's section `retraining`, and what follows from it."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_origin

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from flows import profiles
from flows.process import FlowError

LEDGER = Path("reports/ledger.jsonl")


@dataclass(frozen=True)
class Settings:
    """What the flows need of params.yaml's section `retraining`."""

    cron: str
    drop: str
    profile: str
    dataset: str
    challengers: list[str]
    first_against: str
    commit: bool

    @property
    def raw(self) -> Path:
        """The folder of raw captures."""
        return Path("data", self.profile, "raw", self.dataset)

    @property
    def experiments(self) -> list[str]:
        """Those whose cells compete, EXPERIMENT/CELL, in order of their names."""
        return sorted({name.partition("/")[0] for name in (*self.challengers, self.first_against)})

    @property
    def targets(self) -> tuple[str, ...]:
        """The last of the stages that a run brings to date."""
        return tuple(
            f"reports/{name}/dvc.yaml:tabulate@{self.profile}" for name in self.experiments
        )

    @property
    def kept(self) -> list[str]:
        """What a run may change in git."""
        return [
            f"data/{self.profile}",
            "dvc.lock",
            *(f"reports/{name}/dvc.lock" for name in self.experiments),
            *(f"reports/{name}/{self.profile}" for name in self.experiments),
            str(LEDGER),
            "reports/index.html",
            "reports/grand.html",
            "reports/claims.html",
            "reports/README.md",
        ]


def settings() -> Settings:
    """The section, read anew. FlowError 2 when it is missing or not as it should be."""
    text = profiles.read()
    try:
        section = YAML(typ="safe", pure=True).load(text)["retraining"]
        found = Settings(**{name: section[name] for name in Settings.__dataclass_fields__})
    except (YAMLError, ValueError, TypeError, KeyError) as error:
        raise FlowError(
            f"params.yaml: its section `retraining` cannot be read: {' '.join(str(error).split())}",
            2,
        ) from None
    for name, told in Settings.__annotations__.items():
        kind: Any = get_origin(told) or told
        if not isinstance(getattr(found, name), kind):
            raise FlowError(
                f"params.yaml: retraining.{name} should be {kind.__name__}, found "
                f"{getattr(found, name)!r}",
                2,
            )
    for address in (*found.challengers, found.first_against):
        if not re.fullmatch(r"\w+/[\w-]+", str(address)):
            raise FlowError(
                f"params.yaml: retraining names {address!r}, expected EXPERIMENT/CELL", 2
            )
    for name in found.experiments:
        if not Path("reports", name, "dvc.yaml").is_file():
            raise FlowError(
                f"params.yaml: retraining names cells of {name!r}, but there is no experiment "
                f"reports/{name}",
                2,
            )
    return found

"""What the flows need of params.yaml's section `retraining`, and what follows from it."""

from dataclasses import dataclass
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from flows import profiles
from flows.process import FlowError

EXPERIMENT = "wind_nowcast"
LEDGER = Path("reports/ledger.jsonl")


@dataclass(frozen=True)
class Settings:
    """What the flows need of params.yaml's section `retraining`."""

    cron: str
    drop: str
    profile: str
    dataset: str
    commit: bool

    @property
    def raw(self) -> Path:
        """The folder of raw captures."""
        return Path("data", self.profile, "raw", self.dataset)

    @property
    def target(self) -> str:
        """The last of the stages that a run brings to date."""
        return f"reports/{EXPERIMENT}/dvc.yaml:tabulate@{self.profile}"

    @property
    def kept(self) -> list[str]:
        """What a run may change in git."""
        return [
            f"data/{self.profile}",
            "dvc.lock",
            f"reports/{EXPERIMENT}/dvc.lock",
            f"reports/{EXPERIMENT}/{self.profile}",
            str(LEDGER),
            "reports/index.html",
            "reports/grand.html",
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
    for name, kind in Settings.__annotations__.items():
        if not isinstance(getattr(found, name), kind):
            raise FlowError(
                f"params.yaml: retraining.{name} should be {kind.__name__}, found "
                f"{getattr(found, name)!r}",
                2,
            )
    return found

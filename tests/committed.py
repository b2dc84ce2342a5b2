"""What the commit holds, whatever was run here since: levels that were reached in mini are the
commit's, and another arithmetic may train otherwise (`tradewind compare` judges that)."""

import json
from pathlib import Path

from stages.audit.history import git

ROOT = Path(__file__).parents[1]


def committed(path: str) -> dict:
    """A JSON file as the commit has it; the working copy's where there is no git."""
    text = git(ROOT, "show", f"HEAD:{path}")
    return json.loads(text or (ROOT / path).read_text(encoding="utf-8"))

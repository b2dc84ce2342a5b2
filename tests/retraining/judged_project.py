"""When the first captures of the judged project end."""

from pathlib import Path

STORE, SECONDS = Path("data/live/champions"), 7200

"""What makes a stage stale, computed from what its code imports and means.

A stage's closure holds every module of the project that importing the stage's module may run, and
the templates and tables that these name: `closure`. Each has a digest of what it means: `meaning`.
`python -m stages.code` writes the closures that dvc.yaml asks for; stages depend on those. What is
imported by a computed name stands in deps as a closure of its own; `outside` finds what does not.
"""

from stages.code.project import (
    HOME,
    INERT,
    PACKAGE,
    Project,
    closure,
    list_of,
    outside,
    raw,
    recorded,
)
from stages.code.syntax import meaning

__all__ = [
    "HOME",
    "INERT",
    "PACKAGE",
    "Project",
    "closure",
    "list_of",
    "meaning",
    "outside",
    "raw",
    "recorded",
]

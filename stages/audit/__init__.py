"""The audit of a published number: from the value in git back to the raw bytes."""

from stages.audit.finding import Finding, Problem, Step
from stages.audit.impact import impact
from stages.audit.render import render
from stages.audit.verify import DEPTHS, audit

__all__ = ["DEPTHS", "Finding", "Problem", "Step", "audit", "impact", "render"]

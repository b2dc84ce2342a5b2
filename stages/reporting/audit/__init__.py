"""The audit of a published number: from the value in git back to the raw bytes (design section 5, faults F10 and F20)."""

from stages.reporting.audit.finding import Finding, Problem, Step
from stages.reporting.audit.impact import impact
from stages.reporting.audit.render import render
from stages.reporting.audit.verify import DEPTHS, audit

__all__ = ["DEPTHS", "Finding", "Problem", "Step", "audit", "impact", "render"]

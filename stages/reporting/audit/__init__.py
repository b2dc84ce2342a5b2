"""The audit of a published number: from the value in git back to the raw bytes."""

from stages.reporting.audit.finding import Finding, Problem, Step
from stages.reporting.audit.impact import impact
from stages.reporting.audit.render import render
from stages.reporting.audit.verify import DEPTHS, audit

__all__ = ["DEPTHS", "Finding", "Problem", "Step", "audit", "impact", "render"]

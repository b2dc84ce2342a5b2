"""What leaves the project for others to read: metadata in public standards, model cards, and a
release that can be cited and re-checked."""

from stages.exports.bundle import release
from stages.exports.croissant import export as write_croissant
from stages.exports.model_card import card

__all__ = ["card", "release", "write_croissant"]

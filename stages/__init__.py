"""Tradewind's one importable package: acquisition, validation, preparation, neighbours, models, training, evaluation, reporting."""

"""Families of models other than fields, fitted by the loop of `stages.training`: what a step of theirs sees and minimises, and their command.

A package a family, beside `stages.training` and not within it: the cells of fields rest on that folder whole, and would all be trained again.
"""

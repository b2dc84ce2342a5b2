"""The parts of a data set, in the order in which numbers stand for them: prepared tables hold 0, 1,
2 for training, validation and test."""

SPLITS = ("train", "val", "test")

"""The simulators of the problems beside wind, one file each: raw bytes in the format of the real
files."""

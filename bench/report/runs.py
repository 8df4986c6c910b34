"""Merges the JSON lines of several runs: one entry per measurement, with the values of every run.

Lines belong to the same measurement when `bench`, `store`, `system`, and the settings in `SETTINGS` agree.
"""

from statistics import median

# Fields that say how a measurement was set up. They tell measurements apart and have no spread.
SETTINGS = ["workers", "concurrency", "clients", "bytes", "events", "executions", "messages", "calls",
            "items", "tasks", "results"]


class Spread:
    """The values of one field over all runs that have it."""

    def __init__(self, values):
        self.values = list(values)

    @property
    def median(self):
        return median(self.values)

    @property
    def low(self):
        return min(self.values)

    @property
    def high(self):
        return max(self.values)


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def identity(line):
    return tuple(line.get(field) for field in ["bench", "store", "system", *SETTINGS])


def merged(lines):
    """Returns one entry per measurement in order of first appearance, with a `Spread` per measured number and
    the number of lines as `runs`."""
    groups = {}
    for line in lines:
        groups.setdefault(identity(line), []).append(line)
    for group in groups.values():
        check_size(group)
    return [entry(group) for group in groups.values()]


def check_size(group):
    """Raises `ValueError` if runs of one measurement of ours had different sizes. Peers count steps in a time window."""
    sizes = {line.get("steps") for line in group if "system" not in line}
    if len(sizes) > 1:
        raise ValueError(f"runs of {group[0]['bench']} on {group[0]['store']} have different numbers of steps: "
                         f"{sorted(sizes, key=str)}; measure all of them with the same --steps and --long")


def entry(group):
    result = {"runs": len(group)}
    for field in dict.fromkeys(field for line in group for field in line):
        values = [line[field] for line in group if line.get(field) is not None]
        if not values:
            result[field] = None
        elif field not in SETTINGS and all(is_number(value) for value in values):
            result[field] = Spread(values)
        else:
            result[field] = values[-1]
    return result


def middle(value):
    """The number to sort, divide, and plot by."""
    return value.median if isinstance(value, Spread) else value

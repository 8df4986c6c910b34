"""Renders measurements: tables into a page, plots beside it.

    render.py PAGE LINES...

LINES are files of JSON lines, of `make bench` and of `make bench-peers`. Lines of the same measurement are
merged: a table shows the median, and the lowest and highest value behind it. The text of PAGE between the two
marks is replaced; the rest is for people to write. Plots go to `images/` beside the page.
"""

import json
import sys
from pathlib import Path
from textwrap import fill

import compare
import plots
from runs import Spread, merged, middle

BEGIN, END = "<!-- measured -->", "<!-- /measured -->"

# Title, measurements, and numbers of each table. A missing number is a dash.
CHAIN = ["steps_per_second", "p50_us", "p99_us", "p999_us", "cpu_ms_per_1000_steps", "of_raw", "steps_per_transaction",
         "rows_per_step", "bytes_per_step", "written_bytes_per_step", "resident_mib"]
TABLES = [
    ("Chains of steps", ["chain_1", "chain_100", "chain_1000", "cycle_of_100", "cycle_long"],
     [*CHAIN, "of_fsync", "cost_ratio"]),
    ("Steps in worker processes", ["steps_http", "steps_nats"],
     ["workers", "concurrency", "steps_per_second", "p50_us", "p99_us", "cpu_ms_per_1000_steps",
      "bytes_per_step", "raw_messages_per_second"]),
    ("Messages to executions", ["messages_nats", "messages_postgres", "messages_redis", "messages_mqtt",
                                "messages_webhook"],
     ["messages", "accepted_per_second", "direct_per_second", "of_direct", "cpu_ms_per_1000"]),
    ("Fan-outs", ["fan_out"],
     ["items_per_second", "us_per_item_of_100", "us_per_item_of_10000", "cost_ratio", "cpu_ratio"]),
    ("Sub-playbooks", ["calls"], ["calls_per_second", "cpu_ms_per_1000_calls"]),
    ("Tasks of one command", ["pipeline"],
     ["tasks_per_second", "us_per_task_of_100", "us_per_task_of_1000", "cost_ratio"]),
    ("Steps that only route", ["arcs"], ["steps_per_second", "cpu_us_per_step"]),
    ("Large results", ["large"],
     ["us_per_result_of_16_kib", "us_per_result_of_256_kib", "megabytes_per_second", "cpu_ms_per_result"]),
    ("The journal beside plain inserts", ["journal"],
     ["rows_per_second", "raw_rows_per_second", "of_raw"]),
    ("Rows handed in", ["project"], ["rows_per_second", "raw_rows_per_second", "of_raw"]),
    ("The outbox, a million rows in it", ["outbox"],
     ["claimed_and_published_per_second", "raw_rows_per_second", "of_raw", "count_ms"]),
    ("The event stream", ["tailer"],
     ["rows_per_second", "of_raw", "live_rows_per_second", "lag_at_end_ms"]),
    ("Requests over HTTP", ["http_execute", "http_events", "http_claim"],
     ["clients", "per_second", "p50_us", "p99_us", "p999_us"]),
    ("Replay of one log", ["replay"],
     ["events", "rows_per_second", "decoded_per_second", "raw_read_rows_per_second", "of_raw", "memory_growth_mib", "again_ms"]),
    ("Cold open", ["open_cold"], ["events", "open_ms"]),
    ("First page of a list", ["list_50"], ["of_1000_us", "of_1000000_us", "ratio"]),
    ("Two processes on one database", ["replicas"],
     ["cpu_us_per_step_alone", "cpu_us_per_step_together", "ratio", "conflicts_percent"]),
    ("Memory of executions", ["execution_memory"],
     ["executions", "idle_kib_each", "running_kib_each"]),
    ("Start of `noetl dev`", ["start_up"],
     ["new_p50_ms", "again_p50_ms", "idle_resident_mib", "idle_cpu_ms_per_second"]),
    ("Limits of the machine: syncs of the disk", ["fsync"],
     ["bytes", "growing_p50_us", "again_p50_us", "per_second"]),
    ("Limits of the machine: JSON of the rows of a step", ["json"],
     ["encoded_rows_per_second", "decoded_rows_per_second", "parsed_rows_per_second",
      "parsed_megabytes_per_second"]),
]


def number(value):
    if abs(value) >= 1000:
        return f"{value:,.0f}".replace(",", " ")
    return f"{value:g}" if abs(value) >= 100 else f"{round(value, 2):g}"


def text_of(value):
    if value is None:
        return "–"
    if isinstance(value, Spread):
        low, high = number(value.low), number(value.high)
        return number(value.median) if low == high else f"{number(value.median)} ({low}–{high})"
    return number(value) if isinstance(value, (int, float)) else str(value)


def runs_of(line):
    return "one run" if line["runs"] == 1 else str(line["runs"])


def table(head, rows):
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [f"| {' | '.join(text_of(cell) for cell in row)} |" for row in rows]
    return "\n".join(lines)


def own_tables(lines):
    for title, names, fields in TABLES:
        found = [line for line in lines if line["bench"] in names and "system" not in line]
        if not found:
            continue
        fields = [field for field in fields if any(line.get(field) is not None for line in found)]
        head = ["", "store", "runs", *[field.replace("_", " ") for field in fields]]
        rows = [[line["bench"], line["store"], runs_of(line), *[line.get(field) for field in fields]]
                for line in found]
        yield f"### {title}\n\n{table(head, rows)}"


def of_ours(line, found):
    """The rate relative to our best one on the same store, or to our best one if no other store is like theirs."""
    own = [one for one in found if one["system"] == "noetl"]
    same = [one for one in own if one["store"] == line["store"]]
    rates = [middle(one["steps_per_second"]) for one in same or own]
    if line["system"] == "noetl" or not rates:
        return None
    return round(middle(line["steps_per_second"]) / max(rates), 3)


def peer_tables(lines):
    said = {}
    for title, note, found, (_, noun) in compare.tables(lines):
        fields = compare.FIELDS[found[0]["bench"]]
        head = ["", "runs", *[field.replace("_", " ").replace("steps", noun) for field in fields], "of ours"]
        rows = [[line["name"], runs_of(line), *[line.get(field) for field in fields], of_ours(line, found)]
                for line in found]
        yield f"### {title}\n\n{fill(note, 100)}\n\n{table(head, rows)}"
        for line in found:
            name = f"noetl, {line['store']}" if line["system"] == "noetl" else line["name"]
            said[name] = [name, line.get("version", "this"), line["durability"]]
    if said:
        rows = [said[name] for name in sorted(said)]
        yield f"### Durability of each\n\n{table(['', 'version', 'durability'], rows)}"


def bar(name, value, is_own):
    return name, middle(value), is_own, getattr(value, "low", value), getattr(value, "high", value)


def figures(lines):
    """Yields file, title, unit, and bars of each plot."""
    for title, _, found, (file, noun) in compare.tables(lines):
        if file:
            yield file, title, f"{noun}/s", [bar(line["name"], line["steps_per_second"], line["system"] == "noetl")
                                              for line in found]
    bars = []
    for line in compare.compared(lines):
        alone = (line["bench"], line["concurrency"], line["kind"]) == ("chain", 1, compare.IN_PROCESS)
        if alone and line.get("p50_us"):
            in_ms = Spread(value / 1000 for value in line["p50_us"].values)
            bars.append(bar(line["name"], in_ms, line["system"] == "noetl"))
    yield ("performance-latency", "From a step to the next, one execution alone, code in the engine's process (median)",
           "ms", sorted(bars, key=lambda one: one[1]))
    bars = [bar(f"{line['bench']}, {line['store']}", line["of_raw"], True) for line in lines
            if "system" not in line and line.get("of_raw") is not None]
    yield "performance-of-raw", "Rate relative to plain access to the same medium (1.0 is no ceiling)", "", bars


def draw(lines, images):
    """Writes the plots that have at least two bars; yields how the page shows them."""
    images.mkdir(exist_ok=True)
    for file, title, unit, bars in figures(lines):
        if len(bars) > 1:
            (images / f"{file}.svg").write_text(plots.bars(title, unit, bars))
            yield f"![{title}](images/{file}.svg)"


def read(files):
    return [json.loads(text) for file in files for text in Path(file).read_text().splitlines() if text.startswith("{")]


def replaced(page, parts):
    """Returns the page's text with the part between the marks replaced."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page lacks one of the marks {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{chr(10).join(part + chr(10) for part in parts)}\n{END}{after}"


def main():
    page, files = Path(sys.argv[1]), sys.argv[2:]
    try:
        lines = merged(read(files))
        if not lines:
            raise ValueError("no line of JSON in the files given")
        parts = [*draw(lines, page.parent / "images"), *peer_tables(lines), *own_tables(lines)]
        page.write_text(replaced(page.read_text(), parts))
    except ValueError as error:
        sys.exit(f"render.py: {error}")


if __name__ == "__main__":
    main()

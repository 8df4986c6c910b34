"""Renders measurements: tables into a page, plots beside it.

    render.py PAGE LINES...

LINES are files of JSON lines, of `make bench` and of `make bench-peers`. What stands in PAGE between
the two marks is replaced; the rest is for people to write. Plots go to `images/` beside the page.
"""

import json
import sys
from pathlib import Path

import plots

BEGIN, END = "<!-- measured -->", "<!-- /measured -->"

# Which measurements are tables, and which of their numbers. A number that is not there is a dash.
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

PEER = ["steps_per_second", "p50_us", "p99_us", "p999_us", "cpu_ms_per_1000_steps"]


def text_of(value):
    if value is None:
        return "–"
    if isinstance(value, (int, float)):
        if abs(value) >= 1000:
            return f"{value:,.0f}".replace(",", " ")
        return f"{value:g}" if abs(value) >= 100 else f"{round(value, 2):g}"
    return str(value)


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
        head = ["", "store", *[field.replace("_", " ") for field in fields]]
        rows = [[line["bench"], line["store"], *[line.get(field) for field in fields]] for line in found]
        yield f"### {title}\n\n{table(head, rows)}"


def compared(lines):
    """Our own lines in the words of the peers, and theirs."""
    shapes = {"chain_1": ("chain", 1), "chain_100": ("chain", 100)}
    for line in lines:
        if "system" in line:
            yield line
        elif line["bench"] in shapes and line["store"] != "memory":
            bench, concurrency = shapes[line["bench"]]
            durability = {
                "sqlite": "SQLite: write-ahead log, synchronous=full",
                "postgres": "Postgres as shipped: synchronous_commit=on, fsync=on",
                "postgres+nats": "Postgres as shipped, and every event published to JetStream",
            }[line["store"]]
            yield {**line, "bench": bench, "system": "noetl", "concurrency": concurrency,
                   "durability": durability}
        elif line["bench"] == "fan_out" and line["store"] != "memory":
            yield {"bench": "fan_out", "system": "noetl", "store": line["store"], "concurrency": 1,
                   "steps_per_second": round(1e6 / line["us_per_item_of_100"], 2), "durability": ""}


def name_of(line):
    return line["system"] if line["store"] == "own" else f"{line['system']}, {line['store']}"


def peer_tables(lines):
    lines = list(compared(lines))
    if all(line["system"] == "noetl" for line in lines):
        return
    for title, bench, concurrency in [
        ("A chain of 100 steps, 100 executions at a time", "chain", 100),
        ("A chain of 100 steps, one execution at a time", "chain", 1),
        ("100 items at a time, waited for together", "fan_out", 1),
    ]:
        found = [line for line in lines if (line["bench"], line["concurrency"]) == (bench, concurrency)]
        found.sort(key=lambda line: -line["steps_per_second"])
        best = max((line["steps_per_second"] for line in found if line["system"] == "noetl"), default=None)
        head = ["", *[field.replace("_", " ") for field in PEER], "of ours"]
        rows = [
            [name_of(line), *[line.get(field) for field in PEER],
             round(line["steps_per_second"] / best, 3) if best else None]
            for line in found
        ]
        yield f"### {title}\n\n{table(head, rows)}"
    said = {name_of(line): (line.get("version", "this"), line["durability"]) for line in lines
            if line.get("durability")}
    rows = [[name, version, durability] for name, (version, durability) in sorted(said.items())]
    yield f"### What each keeps\n\n{table(['', 'version', 'durability'], rows)}"


def draw(lines, images):
    """The plots that there are lines for; how the page shows them."""
    lines_of = {(line["bench"], line["store"]): line for line in lines if "system" not in line}
    everyone = list(compared(lines))
    figures = []
    for file, title, bench, concurrency, unit in [
        ("performance-throughput", "Steps per second, chains of 100 steps, 100 at a time", "chain", 100, "steps/s"),
        ("performance-fan-out", "Items per second, 100 at a time, waited for together", "fan_out", 1, "items/s"),
    ]:
        bars = [(name_of(line), line["steps_per_second"], line["system"] == "noetl") for line in everyone
                if (line["bench"], line["concurrency"]) == (bench, concurrency)]
        figures.append((file, title, unit, sorted(bars, key=lambda bar: -bar[1])))
    bars = [(name_of(line), line["p50_us"] / 1000, line["system"] == "noetl") for line in everyone
            if (line["bench"], line["concurrency"]) == ("chain", 1) and line.get("p50_us")]
    figures.append(("performance-latency", "From a step to the next, one execution alone (median)", "ms",
                    sorted(bars, key=lambda bar: bar[1])))
    bars = [(f"{bench}, {store}", line["of_raw"], True) for (bench, store), line in lines_of.items()
            if line.get("of_raw") is not None]
    figures.append(("performance-of-raw", "Of the raw limit of the same medium in the same run", "", bars))
    images.mkdir(exist_ok=True)
    for file, title, unit, bars in figures:
        if len(bars) > 1:
            (images / f"{file}.svg").write_text(plots.bars(title, unit, bars))
            yield f"![{title}](images/{file}.svg)"


def main():
    page, files = Path(sys.argv[1]), sys.argv[2:]
    lines = []
    for file in files:
        for text in Path(file).read_text().splitlines():
            if text.startswith("{"):
                lines.append(json.loads(text))
    if not lines:
        sys.exit("no line of JSON in what was given")
    parts = [*draw(lines, page.parent / "images"), *peer_tables(lines), *own_tables(lines)]
    text = page.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    if not rest or END not in text:
        sys.exit(f"{page} has not both marks, {BEGIN} and {END}")
    page.write_text(f"{before}{BEGIN}\n\n{chr(10).join(part + chr(10) for part in parts)}\n{END}{after}")


main()

"""Puts each peer beside the measurement of ours that does the same kind of work.

Two questions decide where a peer stands: in which process its step code runs, and what one item of its
`fan_out` is. `bench/peers/README.md` gives the reasons.
"""

from runs import Spread, middle

IN_PROCESS, SEPARATE = "in the engine's process", "in another process"
ITEMS, CHILDREN = "items of one execution", "child executions"

# Where the step code of each peer runs, and what it starts a hundred of.
PEERS = {
    "restate": (SEPARATE, CHILDREN),
    "dbos": (IN_PROCESS, CHILDREN),
    "duroxide": (IN_PROCESS, ITEMS),
    "graphile-worker": (IN_PROCESS, ITEMS),
    "prefect": (SEPARATE, ITEMS),
}

DURABILITY = {
    "sqlite": "SQLite: write-ahead log, synchronous=full",
    "postgres": "Postgres as shipped: synchronous_commit=on, fsync=on",
    "postgres+nats": "Postgres as shipped, and every event published to JetStream",
}

# Columns by kind of work. Times between two items that run at the same time mean nothing, so fan-outs have none.
FIELDS = {
    "chain": ["steps_per_second", "p50_us", "p99_us", "p999_us", "cpu_ms_per_1000_steps"],
    "fan_out": ["steps_per_second", "cpu_ms_per_1000_steps"],
}

# Tables of the report: title, note, kind of work, file of its plot if it has one, and the word for one unit of work.
TABLES = [
    ("Chains, 100 executions at a time, step code in the engine's process",
     "Ours is `chain_100`, with the worker inside the process. DBOS and duroxide are libraries; graphile-worker's jobs run "
     "in the process that fetches them.",
     ("chain", 100, IN_PROCESS), "performance-throughput", "steps"),
    ("Chains, 100 executions at a time, step code in another process",
     "Ours are `steps_http` and `steps_nats`: a server process, worker processes, and Postgres, with 64 executions at a "
     "time and longer chains, the nearest that `make bench` measures. Their processor time leaves out Postgres. The worker inside the process "
     "is no counterpart here, because no step of it crosses a socket.",
     ("chain", 100, SEPARATE), "performance-throughput-separate", "steps"),
    ("Chains, one execution at a time, step code in the engine's process", "Ours is `chain_1`.",
     ("chain", 1, IN_PROCESS), None, "steps"),
    ("Chains, one execution at a time, step code in another process",
     "Ours is missing: `steps_http` and `steps_nats` run at least eight executions at a time, and `chain_1` has its "
     "worker inside the process.",
     ("chain", 1, SEPARATE), None, "steps"),
    ("100 items of one execution, waited for together",
     "Ours is `fan_out`: a parallel loop over 100 items, at most 64 in flight, with the worker inside the process. An item is an "
     "activity of duroxide, a job of graphile-worker, and a task of Prefect.",
     ("fan_out", 1, ITEMS), "performance-fan-out", "items"),
    ("Child executions, waited for together",
     "Ours is `calls`: 2 000 calls of a playbook of one step, at most 64 in flight, with the worker inside the process. Restate calls another "
     "handler, in another process than its server; DBOS puts a workflow on a queue. Both start 100 for each parent.",
     ("fan_out", 1, CHILDREN), "performance-calls", "calls"),
]


def ours(line, bench, concurrency, kind, name, **fields):
    return {**line, "bench": bench, "system": "noetl", "name": f"noetl, {name}", "concurrency": concurrency,
            "kind": kind, "durability": DURABILITY[line["store"]], **fields}


def own(line):
    """Our own line in the words of the peers, or `None` if no peer does that work."""
    bench, store = line["bench"], line["store"]
    if store not in DURABILITY:
        return None
    if bench in ("chain_1", "chain_100"):
        return ours(line, "chain", int(bench.split("_")[1]), IN_PROCESS, store)
    if bench in ("steps_http", "steps_nats") and line["concurrency"] == 64:
        way = "HTTP" if bench == "steps_http" else "NATS"
        workers = int(line["workers"])
        name = f"{store}, {workers} worker process{'es' if workers > 1 else ''} over {way}"
        return ours(line, "chain", 100, SEPARATE, name)
    if bench == "fan_out" and line.get("us_per_item_of_100"):
        rates = Spread(1e6 / value for value in line["us_per_item_of_100"].values)
        return ours(line, "fan_out", 1, ITEMS, store, steps_per_second=rates)
    if bench == "calls":
        return ours(line, "fan_out", 1, CHILDREN, store, steps_per_second=line["calls_per_second"],
                    cpu_ms_per_1000_steps=line.get("cpu_ms_per_1000_calls"))
    return None


def peer(line):
    place, item = PEERS[line["system"]]
    name = line["system"] if line["store"] == "own" else f"{line['system']}, {line['store']}"
    return {**line, "name": name, "kind": item if line["bench"] == "fan_out" else place}


def compared(lines):
    """Returns the entries that stand in a comparison, ours and theirs, each with a `name` and a `kind`."""
    found = [peer(line) if "system" in line else own(line) for line in lines]
    return [line for line in found if line]


def tables(lines):
    """Yields title, note, entries from the fastest down, and plot file and noun of each comparison with a peer."""
    lines = compared(lines)
    for title, note, kind, file, noun in TABLES:
        found = [line for line in lines if (line["bench"], line["concurrency"], line["kind"]) == kind]
        if any(line["system"] != "noetl" for line in found):
            found.sort(key=lambda line: -middle(line["steps_per_second"]))
            yield title, note, found, (file, noun)

#!/usr/bin/env python3
"""Compares what two builds of the program show to clients, operators, and stored data.

usage: scripts/compare-wire.py OLD_PROGRAM NEW_PROGRAM

Compares the OpenAPI document (routes, parameters, bodies with schemas resolved, so that schema names and prose don't
count), the flags, values, variables, and subcommands in `--help` of every verb, the names, types, and labels of
`/metrics`, and the stored data of the same executions: tables, columns, and the keys of every JSON text. Prints each
difference and exits with 1 if there is any.
"""

import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "published"))
from stage import free_port, wait_for  # noqa: E402

EXAMPLES = ["hello", "branch", "loop", "loop-parallel", "errors", "retry", "sub-playbook", "pipeline", "join", "set", "cursor"]
CALLED = ["child"]
PROSE = {"description", "summary", "title", "example", "examples"}


def resolved(document, node, seen=()):
    """Returns a schema without prose and without names: each reference is replaced by what it refers to."""
    if isinstance(node, list):
        return [resolved(document, item, seen) for item in node]
    if not isinstance(node, dict):
        return node
    reference = node.get("$ref")
    if reference:
        if reference in seen:
            return f"recursive, {len(seen) - seen.index(reference)} levels up"
        target = document
        for part in reference.removeprefix("#/").split("/"):
            target = target[part]
        return resolved(document, target, seen + (reference,))
    found = {}
    for key, value in node.items():
        if key in PROSE and isinstance(value, str):
            continue
        if key == "properties":
            found[key] = {name: resolved(document, schema, seen) for name, schema in value.items()}
        else:
            found[key] = resolved(document, value, seen)
    return found


def openapi(document):
    rows = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            rows[f"{method.upper()} {path}"] = json.dumps(resolved(document, operation), sort_keys=True)
    return rows


def metrics(text):
    rows = {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ", 3)
            rows[f"type of {name}"] = kind
        elif line and not line.startswith("#"):
            name, _, labels = re.match(r"([a-zA-Z0-9_:]+)(\{(.*)\})?", line).groups()
            keys = ",".join(sorted(re.findall(r"(\w+)=\"", labels or "")))
            rows[f"{name}{{{keys}}}"] = "present"
    return rows


def help_rows(program, verbs=()):
    text = subprocess.run([program, *verbs, "--help"], capture_output=True, text=True, check=True).stdout
    name = "noetl " + " ".join(verbs)
    rows = {}
    # Help wraps within brackets. A default in words is prose.
    flat = " ".join(text.split())
    for kind, value in re.findall(r"\[(default|alias|aliases|possible values): ([^\]]*)\]", flat):
        if kind != "default" or value[:1].isdigit():
            rows[f"{name}: {kind} {value}"] = "present"
    for variable in re.findall(r"\b(?:NOETL|POSTGRES|OTEL)_[A-Z_]+", flat):
        rows[f"{name}: variable {variable}"] = "present"
    section = ""
    for line in text.splitlines():
        heading = re.match(r"^([A-Z][A-Za-z ]+):$", line)
        if heading:
            section = heading.group(1)
        option = re.match(r"^\s{2,6}((-\w, )?--[\w-]+.*?|-\w)(\s{2,}.*)?$", line)
        argument = re.match(r"^\s{2}([<\[][A-Z|=_. -]+[>\]](?:\.\.\.)?)", line) if section == "Arguments" else None
        verb = re.match(r"^  ([a-z][\w-]*)(\s|$)", line) if section == "Commands" else None
        value = re.match(r"^\s+- ([\w-]+)(:|$)", line)
        for kind, match in (("option", option), ("argument", argument), ("value", value)):
            if match:
                rows[f"{name}: {kind} {match.group(1).strip()}"] = "present"
        if verb and verb.group(1) != "help":
            rows[f"{name}: verb {verb.group(1)}"] = "present"
            rows.update(help_rows(program, (*verbs, verb.group(1))))
    return rows


def keys_of(value, path=""):
    """Yields the path of every key in a JSON value; items of arrays share one path."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield f"{path}.{key}"
            yield from keys_of(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from keys_of(inner, f"{path}[]")


def stored(path):
    rows = {}
    database = sqlite3.connect(path)
    for (table,) in database.execute("select name from sqlite_master where type in ('table', 'view')").fetchall():
        columns = [row[1] for row in database.execute(f'pragma table_info("{table}")')]
        rows[f"table {table}"] = ",".join(columns)
        for row in database.execute(f'select * from "{table}"'):
            for column, value in zip(columns, row):
                if isinstance(value, bytes):
                    value = value.decode("utf-8", "replace")
                if not isinstance(value, str) or value[:1] not in "{[":
                    continue
                try:
                    parsed = json.loads(value)
                except ValueError:
                    continue
                for key in keys_of(parsed):
                    # Keys made of IDs differ in every run.
                    rows[f"{table}.{column}: {re.sub(r'[0-9]{6,}', 'ID', key)}"] = "present"
    # A table in earlier versions, now a view.
    for (kind, status) in database.execute("select distinct event_type, status from event"):
        rows[f"event {kind} {status}"] = "present"
    database.close()
    return rows


def is_healthy(url):
    try:
        urllib.request.urlopen(url + "/health", timeout=5).close()
        return True
    except OSError:
        return False


def facts(program):
    """Returns everything that is compared, by a name that a person can find."""
    rows = {f"help: {name}": value for name, value in help_rows(program).items()}
    with tempfile.TemporaryDirectory() as directory:
        port = free_port()
        environment = {**os.environ, "NO_COLOR": "1"}
        server = subprocess.Popen(
            [program, "dev", "--port", str(port), "--auth", "open", "--data", directory],
            cwd=directory, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        url = f"http://127.0.0.1:{port}"
        try:
            wait_for("the server", lambda: is_healthy(url))
            here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "examples")
            for example in EXAMPLES + CALLED:
                file = os.path.join(here, f"{example}.yaml")
                subprocess.run(
                    [program, "register", "playbook", "-f", file, "--server-url", url],
                    env=environment, capture_output=True, check=True,
                )
            for example in EXAMPLES:
                done = subprocess.run(
                    [program, "execute", f"examples/{example}", "--follow", "--server-url", url],
                    env=environment, capture_output=True, text=True,
                )
                if done.returncode not in (0, 1):
                    sys.exit(f"{example} didn't run: {done.stderr}")
                rows[f"example {example}"] = str(done.returncode)
            with urllib.request.urlopen(url + "/api/openapi.json") as answer:
                rows.update({f"openapi: {name}": value for name, value in openapi(json.load(answer)).items()})
            with urllib.request.urlopen(url + "/metrics") as answer:
                rows.update({f"metrics: {name}": value for name, value in metrics(answer.read().decode()).items()})
        finally:
            server.terminate()
            server.wait()
        for name in sorted(os.listdir(directory)):
            if name.endswith(".db"):
                rows.update({f"stored: {row}": value for row, value in stored(os.path.join(directory, name)).items()})
    return rows


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    old, new = (facts(os.path.abspath(program)) for program in sys.argv[1:])
    different = 0
    for name in sorted(old.keys() | new.keys()):
        before, after = old.get(name), new.get(name)
        if before != after:
            different += 1
            print(f"{name}\n  old: {before}\n  new: {after}")
    print(f"{len(old)} facts compared, {different} differ")
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Runs every case on our worker and on the published one, and writes the results into the guide.

usage: run.py --noetl PROGRAM --worker PROGRAM --cli PROGRAM --postgres URL [--page FILE] [--only TEXT]

Registers, starts, and follows everything with the published CLI. Exits with 1 if a case fails that `known.json` doesn't
name, or if one passes that it does: the list says what is true. With `--only`, runs the cases whose name contains TEXT
and leaves the page as it is.
"""

import argparse
import json
import pathlib
import re
import sys
import tempfile
import time
import uuid

import nats
import stub
from operations import OPERATIONS
from stage import CaseError, Stage, head_of

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
START, END = "<!-- results of make test-published -->", "<!-- end of results -->"


class Playbook:
    """A playbook whose head says which result it has."""

    def __init__(self, file):
        self.file = file
        head = head_of(file)
        self.path = next(
            line.split("path: ")[1].strip(" }") for line in file.read_text().splitlines() if "path: " in line
        )
        is_example = file.parent.name == "examples"
        self.name = f"`examples/{file.name}`" if is_example else re.split(r" (?:Prints|Published only):", head)[0].strip()
        self.on_own = "Published only:" not in head
        self.expected = json.JSONDecoder().raw_decode(head.split("Prints: ", 1)[1])[0]

    def run(self, stage, payload):
        """Returns why the case failed, or nothing."""
        key = uuid.uuid4().hex[:8]
        nats.create_bucket(stage.nats, f"published_{key}")
        payload = {**payload, "key": key, "bucket": f"published_{key}"}
        try:
            status, result, error = stage.outcome(stage.execute(self.path, payload), 60)
        except (CaseError, OSError, ValueError) as failure:
            return str(failure)
        if (status, result) != ("COMPLETED", self.expected):
            return f"{status}, result {json.dumps(result)[:300]}, error {json.dumps(error)[:300]}"
        return None


def playbooks():
    """Returns the portable examples and the playbooks of this directory."""
    files = [file for file in sorted((ROOT / "examples").glob("*.yaml")) if "\n# Portable:" in file.read_text()]
    files += sorted((HERE / "playbooks").glob("*.yaml"))
    return [Playbook(file) for file in files]


def prepare(stage, options):
    """Registers every example, for those that call others, and the credentials of the cases."""
    for file in [*sorted((ROOT / "examples").glob("*.yaml")), *sorted((HERE / "playbooks").glob("*.yaml"))]:
        if "kind: Playbook" in file.read_text():
            stage.register(file)
    address = options.postgres.removeprefix("postgres://")
    user, place = address.split("@", 1)
    host, database = place.split("/", 1)
    credentials = [
        {"name": "published-bearer", "type": "bearer", "data": {"token": stub.BEARER}},
        {"name": "published-postgres", "type": "postgres", "data": {
            "db_host": host.split(":")[0], "db_port": int(host.split(":")[1]), "db_user": user,
            "db_password": "none", "db_name": database,
        }},
    ]
    for credential in credentials:
        file = stage.directory / "credential.json"
        file.write_text(json.dumps(credential))
        stage.cli("register", "credential", "-f", file)
        file.unlink()


def run_playbooks(stage, options, cases, worker):
    """Runs the cases with a worker as the only one, and returns why each failed."""
    payload = {"base": options.stub, "nats": stage.nats}
    failures = {}
    with worker:
        for case in cases:
            since = time.monotonic()
            failures[case.name] = case.run(stage, payload)
            tell(worker.name, case.name, failures[case.name], since)
    return failures


def run_operations(stage, cases):
    failures = {}
    for name, function in cases:
        since = time.monotonic()
        try:
            function(stage)
            failures[name] = None
        except (CaseError, OSError, ValueError, KeyError, TypeError) as failure:
            failures[name] = f"{type(failure).__name__}: {failure}"
        if not stage.server.is_running():
            stage.start()
        tell("published", name, failures[name], since)
    return failures


def tell(worker, case, failure, since):
    took = time.monotonic() - since
    print(f"  {'FAILED' if failure else 'passed'} {took:5.1f} s  {worker}: {case}", file=sys.stderr)
    if failure:
        print(f"         {failure}", file=sys.stderr)


def table(own, published, known):
    """Returns the results as Markdown."""
    rows = ["| case | our worker | published worker | why not |", "|---|---|---|---|"]
    word = {True: "passes", False: "fails"}
    for case, failure in published.items():
        ours = word[own[case] is None] if case in own else "–"
        rows.append(f"| {case} | {ours} | {word[failure is None]} | {known.get(case, '') if failure else ''} |")
    return "\n".join(rows)


def passes(published):
    passed = sum(why is None for why in published.values())
    return f"{passed} of {len(published)} cases pass on the published worker."


def mistakes(own, published, known, is_whole):
    """Returns every difference between the results and the list of known failures."""
    failed = [case for case, why in published.items() if why]
    wrong = [f"fails, and known.json doesn't name it: {case}" for case in failed if case not in known]
    wrong += [f"passes, and known.json names it: {case}" for case in published if case in known and case not in failed]
    wrong += [f"fails on our worker: {case}" for case, why in own.items() if why]
    if is_whole:
        wrong += [f"known.json names no case: {case}" for case in known if case not in published]
    return wrong


def write_page(page, text):
    content = page.read_text()
    before, rest = content.split(START)
    after = rest.split(END)[1]
    page.write_text(f"{before}{START}\n\n{text}\n\n{END}{after}")


def main():
    parser = argparse.ArgumentParser()
    for name in ("noetl", "worker", "cli"):
        parser.add_argument(f"--{name}", required=True, type=pathlib.Path)
    parser.add_argument("--postgres", required=True)
    parser.add_argument("--page", type=pathlib.Path)
    parser.add_argument("--note", default="", help="text before the results on the page")
    parser.add_argument("--only", default="")
    parser.add_argument("--directory", type=pathlib.Path, help="keep logs here")
    parser.add_argument("--on", choices=("own", "published", "both"), default="both", help="workers to run on")
    options = parser.parse_args()
    options.stub = stub.start()
    known = json.loads((HERE / "known.json").read_text())
    cases = [case for case in playbooks() if options.only in case.name]
    operations = [entry for entry in OPERATIONS if options.only in entry[0]]
    own, published = {}, {}
    with tempfile.TemporaryDirectory() as made:
        stage = Stage(options, options.directory or pathlib.Path(made), "main", options.postgres)
        try:
            stage.start_nats()
            stage.start()
            prepare(stage, options)
            if options.on != "published":
                ours = [case for case in cases if case.on_own]
                own = run_playbooks(stage, options, ours, stage.own_worker())
            if options.on != "own":
                published = run_playbooks(stage, options, cases, stage.published_worker())
                published.update(run_operations(stage, operations))
        finally:
            stage.remove()
    is_whole = not options.only and options.on == "both"
    wrong = mistakes(own, published, known, is_whole)
    if is_whole and options.page:
        write_page(options.page, f"{options.note}{passes(published)}\n\n{table(own, published, known)}")
    for line in wrong:
        print(line, file=sys.stderr)
    print(passes(published), file=sys.stderr)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()

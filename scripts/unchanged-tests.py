#!/usr/bin/env python3
"""Finds the test binaries that passed a whole `make test` in this clone and have not changed since.

usage: scripts/unchanged-tests.py filter FILE   prints them as a filter expression of nextest, or none()
       scripts/unchanged-tests.py record FILE   writes the present binaries to FILE, after a run that passed

Cargo links a test binary again whenever code that it contains changes, so its size and time of writing identify that
code. Files that tests read while they run (examples, snapshots, scripts, documents) are not linked: a change to any
file that is not Rust code makes every binary count as changed.
"""

import hashlib
import json
import os
import subprocess
import sys


def output(*command):
    return subprocess.run(command, check=True, capture_output=True).stdout


def other_files():
    """Returns a digest of every file of the checkout that is not Rust code."""
    digest = hashlib.sha256()
    names = output("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").decode().split("\0")
    for name in sorted(name for name in names if name and not name.endswith(".rs")):
        digest.update(name.encode() + b"\0")
        if os.path.isfile(name):
            with open(name, "rb") as file:
                digest.update(hashlib.sha256(file.read()).digest())
    return digest.hexdigest()


def binaries():
    """Returns size and time of writing of each test binary, by its ID."""
    listed = output(
        "cargo", "nextest", "list", "--locked", "--workspace", "--list-type", "binaries-only", "--message-format", "json"
    )
    found = {}
    for binary, about in json.loads(listed)["rust-binaries"].items():
        status = os.stat(about["binary-path"])
        found[binary] = [status.st_size, status.st_mtime_ns]
    return found


def unchanged(recorded, present):
    if recorded.get("other_files") != present["other_files"]:
        return []
    before = recorded.get("binaries", {})
    return sorted(name for name, state in present["binaries"].items() if before.get(name) == state)


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in ("filter", "record"):
        sys.exit(__doc__)
    action, path = sys.argv[1:]
    present = {"other_files": other_files(), "binaries": binaries()}
    if action == "record":
        with open(path + ".new", "w") as file:
            json.dump(present, file)
        os.replace(path + ".new", path)
        return
    try:
        with open(path) as file:
            recorded = json.load(file)
    except (FileNotFoundError, ValueError):
        recorded = {}
    names = unchanged(recorded, present)
    print(" | ".join(f"binary_id(={name})" for name in names) or "none()")


if __name__ == "__main__":
    main()

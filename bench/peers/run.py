"""Measures the peers, one JSON object per line on stdout; what cannot be measured is said on stderr."""

import argparse
import importlib.util
import os
import shutil
import sys
import tempfile
from pathlib import Path

import harness

PEERS = ["restate", "duroxide", "dbos", "graphile", "prefect"]

# What each is asked to do: the shape, and executions at a time.
PLAN = [("chain", 1), ("chain", 100), ("fan_out", 1)]


class Place:
    """Where peers are installed, and where they keep what they write while they are measured."""

    def __init__(self, target, work, seconds):
        self.target, self.work, self.seconds = target, work, seconds

    def fresh(self, name):
        return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self.work))

    def python(self, name, *packages):
        """A Python that has these packages."""
        directory = self.target / name
        python = directory / "bin/python"
        wanted = "\n".join(packages)
        mark = directory / "packages"
        if not mark.exists() or mark.read_text() != wanted:
            harness.run([sys.executable, "-m", "venv", directory])
            harness.run([python, "-m", "pip", "install", "--quiet", *packages])
            mark.write_text(wanted)
        return python

    def node(self, name, source, files):
        """A directory with these files and the packages that its package.json names."""
        if not shutil.which("npm"):
            raise harness.Skipped("there is no npm")
        directory = self.target / name
        directory.mkdir(parents=True, exist_ok=True)
        for file in files:
            shutil.copy(source / file, directory / file)
        harness.run(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts"], cwd=directory)
        return directory

    def cargo(self, source, program):
        """The release build of a project that is not of the workspace."""
        target = self.target / "cargo"
        build = ["cargo", "build", "--release", "--locked", "--manifest-path", source / "Cargo.toml"]
        # As their authors would have it built, whatever ours is built with.
        settings = {name: value for name, value in os.environ.items() if not name.startswith("CARGO_PROFILE_")}
        harness.run(build, env={**settings, "CARGO_TARGET_DIR": str(target)})
        return target / "release" / program


def load(name):
    """The module of a peer. Their directories are named like packages they import, so by path."""
    path = harness.HERE / name / "peer.py"
    spec = importlib.util.spec_from_file_location(f"peer_{name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="only peers whose name contains this")
    parser.add_argument("--seconds", type=int, default=15, help="how long each measurement counts")
    parser.add_argument("--install", action="store_true", help="install and build, measure nothing")
    arguments = parser.parse_args()
    target = harness.ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "peers"
    target.mkdir(parents=True, exist_ok=True)
    plan = [] if arguments.install else PLAN
    with tempfile.TemporaryDirectory(dir=target) as work, harness.Postgres() as postgres:
        place = Place(target, Path(work), arguments.seconds)
        for name in PEERS:
            if arguments.only not in name:
                continue
            harness.say(f"==> {name}")
            try:
                load(name).measure(place, postgres, plan)
            except harness.Skipped as reason:
                harness.say(f"  skipped: {name}: {reason}")


main()

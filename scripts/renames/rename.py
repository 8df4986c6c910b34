#!/usr/bin/env python3
"""Renames Rust items and modules through rust-analyzer, from a table that can be applied again.

usage: scripts/renames/rename.py [--analyzer PROGRAM] [--std DIRECTORY] [--only CRATE] [TABLE]

A branch that was started before the renames runs this once instead of resolving conflicts: rows whose item already has
its new name are skipped. The table (default: table.tsv beside this script) has the columns crate, file, kind, old, new,
new_file; paths start at the crate's src. A row with `mod` as its kind only moves a file. rust-analyzer finds every use, so equal names of other items
stay. Names in comments follow where they are in backticks. Compile afterwards: a name that clashes, or a use inside a
macro, is for a person to mend. Fields and variants are not in the table: serde, clap, and `Debug` print their names.
"""

import argparse
import json
import os
import pathlib
import queue
import re
import subprocess
import sys
import threading

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Analyzer:
    """A rust-analyzer process, spoken to over its standard input and output."""

    def __init__(self, program, std):
        self.process = subprocess.Popen(
            [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=ROOT
        )
        self.incoming = queue.Queue()
        self.next_id = 0
        self.versions = {}
        threading.Thread(target=self._read, daemon=True).start()
        cargo = {"allTargets": True, "targetDir": True}
        if std:
            cargo["sysrootSrc"] = std
        options = {
            "cargo": cargo,
            "checkOnSave": False,
            "cachePriming": {"enable": False},
            "files": {"exclude": ["target", "web", "docs", ".git"], "watcher": "client"},
        }
        self.request(
            "initialize",
            {
                "processId": os.getpid(),
                "rootUri": ROOT.as_uri(),
                "workspaceFolders": [{"uri": ROOT.as_uri(), "name": "noetl"}],
                "initializationOptions": options,
                "capabilities": {
                    "workspace": {
                        "workspaceEdit": {"documentChanges": True, "resourceOperations": ["rename"]},
                    },
                    "experimental": {"serverStatusNotification": True},
                    "general": {"positionEncodings": ["utf-8"]},
                },
            },
        )
        self.notify("initialized", {})
        self._wait_until_loaded()

    def _read(self):
        stream = self.process.stdout
        while True:
            length = None
            while True:
                line = stream.readline()
                if not line:
                    self.incoming.put(None)
                    return
                line = line.strip()
                if not line:
                    break
                name, _, value = line.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
            self.incoming.put(json.loads(stream.read(length)))

    def _send(self, message):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def _next(self):
        message = self.incoming.get()
        if message is None:
            sys.exit("rust-analyzer ended.")
        # Questions of the server (configuration, progress tokens) need some answer.
        if "id" in message and "method" in message:
            items = message.get("params", {}).get("items", []) if message["method"] == "workspace/configuration" else None
            self._send({"id": message["id"], "result": [None] * len(items) if items is not None else None})
        return message

    def notify(self, method, params):
        self._send({"method": method, "params": params})

    def request(self, method, params):
        """Returns the result, or raises ValueError with the server's message."""
        while True:
            self.next_id += 1
            wanted = self.next_id
            self._send({"id": wanted, "method": method, "params": params})
            while True:
                message = self._next()
                if message.get("id") == wanted and "method" not in message:
                    break
            error = message.get("error")
            if not error:
                return message.get("result")
            # The content changed while the server computed: ask once more.
            if error.get("code") != -32801:
                raise ValueError(error.get("message"))

    def _wait_until_loaded(self):
        while True:
            message = self._next()
            if message.get("method") == "experimental/serverStatus":
                params = message["params"]
                if params.get("message"):
                    print("rust-analyzer:", params["message"], file=sys.stderr)
                if params.get("quiescent"):
                    return

    def show(self, path, text):
        """Tells the server the present text of a file."""
        uri = path.as_uri()
        version = self.versions.get(uri, 0) + 1
        self.versions[uri] = version
        if version == 1:
            document = {"uri": uri, "languageId": "rust", "version": 1, "text": text}
            self.notify("textDocument/didOpen", {"textDocument": document})
        else:
            self.notify(
                "textDocument/didChange",
                {"textDocument": {"uri": uri, "version": version}, "contentChanges": [{"text": text}]},
            )

    def moved(self, old, new):
        """Tells the server that a file has moved."""
        if self.versions.pop(old.as_uri(), None):
            self.notify("textDocument/didClose", {"textDocument": {"uri": old.as_uri()}})
        changes = [{"uri": old.as_uri(), "type": 3}, {"uri": new.as_uri(), "type": 1}]
        self.notify("workspace/didChangeWatchedFiles", {"changes": changes})
        self.show(new, new.read_text())

    def close(self):
        self.process.kill()
        self.process.wait()


def path_of(uri):
    return pathlib.Path(uri.removeprefix("file://"))


def apply_edits(text, edits):
    """Applies edits, whose columns count bytes."""
    lines = [line.encode() for line in text.split("\n")]
    unique = {json.dumps(edit["range"], sort_keys=True) + edit["newText"]: edit for edit in edits}
    for edit in sorted(
        unique.values(), key=lambda edit: (edit["range"]["start"]["line"], edit["range"]["start"]["character"]), reverse=True
    ):
        start, end = edit["range"]["start"], edit["range"]["end"]
        head = lines[start["line"]][: start["character"]]
        tail = lines[end["line"]][end["character"] :]
        new = (head + edit["newText"].encode() + tail).split(b"\n")
        lines[start["line"] : end["line"] + 1] = new
    return b"\n".join(lines).decode()


def edits_by_file(answer):
    found, moves = {}, []
    for change in (answer or {}).get("documentChanges", []):
        if change.get("kind") == "rename":
            moves.append((path_of(change["oldUri"]), path_of(change["newUri"])))
        else:
            found.setdefault(path_of(change["textDocument"]["uri"]), []).extend(change["edits"])
    for uri, edits in (answer or {}).get("changes", {}).items():
        found.setdefault(path_of(uri), []).extend(edits)
    return found, moves


DEFINITION = {
    "fn": r"\bfn\s+({})\b",
    "struct": r"\bstruct\s+({})\b",
    "enum": r"\benum\s+({})\b",
    "trait": r"\btrait\s+({})\b",
    "type": r"\btype\s+({})\b",
    "macro": r"\b({})\b",
    "mod": r"\bmod\s+({})\s*;",
    "const": r"\b(?:const|static)\s+({})\b",
    "": r"\b(?:fn|struct|enum|trait|type|const|static)\s+({})\b",
}


def definition(text, kind, name):
    """Returns line and byte column of the item's name, or None."""
    pattern = re.compile(DEFINITION[kind].format(re.escape(name)), re.M)
    for number, line in enumerate(text.split("\n")):
        if line.lstrip().startswith("//"):
            continue
        found = pattern.search(line)
        if found:
            return number, len(line[: found.start(1)].encode())
    return None


def in_comments(text, old, new):
    """Renames an item in the comments of a file where it stands in backticks."""

    def comment(match):
        return re.sub(r"`[^`\n]*`", lambda code: re.sub(rf"\b{old}\b", new, code.group(0)), match.group(0))

    return re.sub(r"//[^\n]*", comment, text)


def rows(path, only):
    lines = path.read_text().splitlines()
    for line in lines[1:]:
        if line.strip() and not line.startswith("#"):
            crate, file, kind, old, new, new_file = (line.split("\t") + [""] * 6)[:6]
            if not only or crate == only:
                yield crate, file, kind, old, new, new_file


def rename_items(analyzer, table):
    failed = 0
    for crate, file, kind, old, new, new_file in table:
        if kind == "mod" or old == new:
            continue
        source = ROOT / "crates" / crate / "src"
        path = next((place for place in (source / file, source / (new_file or file)) if place.exists()), None)
        if path is None:
            print(f"{crate}/{file}: no such file")
            failed += 1
            continue
        text = path.read_text()
        at = definition(text, kind, old)
        if at is None:
            if definition(text, kind, new) is None:
                print(f"{crate}/{file}: neither {old} nor {new}")
                failed += 1
            continue
        position = {"textDocument": {"uri": path.as_uri()}, "position": {"line": at[0], "character": at[1]}, "newName": new}
        try:
            found, _ = edits_by_file(analyzer.request("textDocument/rename", position))
        except ValueError as error:
            print(f"{crate}/{file}: {old}: {error}")
            failed += 1
            continue
        count = 0
        for changed, edits in found.items():
            new_text = apply_edits(changed.read_text(), edits)
            if old[0].isupper():
                new_text = in_comments(new_text, old, new)
                # serde names functions in strings.
                new_text = new_text.replace(f'= "{old}::', f'= "{new}::')
            changed.write_text(new_text)
            analyzer.show(changed, new_text)
            count += len(edits)
        print(f"{crate}/{file}: {old} -> {new}: {count} in {len(found)} files", flush=True)
    return failed


def module_moves(table):
    """Returns the files to move, deepest first, so that the parents of later ones still have their old names."""
    moves = {}
    for crate, file, _, _, _, new_file in table:
        old, new = pathlib.PurePath(file), pathlib.PurePath(new_file or file)
        if old.stem != new.stem:
            moves[(crate, old)] = new.stem
    return sorted(moves.items(), key=lambda move: -len(move[0][1].parts))


def declaring_file(source, file):
    """Returns the file that has the `mod` line of a module."""
    parent = file.parent
    if parent == pathlib.PurePath("."):
        return next(place for place in (source / "lib.rs", source / "main.rs") if place.exists())
    return next((place for place in (source / f"{parent}.rs", source / parent / "mod.rs") if place.exists()), None)


def move_modules(analyzer, table):
    failed = 0
    for (crate, file), stem in module_moves(table):
        source = ROOT / "crates" / crate / "src"
        if not (source / file).exists():
            continue
        parent = declaring_file(source, file)
        at = definition(parent.read_text(), "mod", file.stem) if parent else None
        if at is None:
            print(f"{crate}/{file}: no mod line")
            failed += 1
            continue
        position = {"textDocument": {"uri": parent.as_uri()}, "position": {"line": at[0], "character": at[1]}, "newName": stem}
        try:
            found, moves = edits_by_file(analyzer.request("textDocument/rename", position))
        except ValueError as error:
            print(f"{crate}/{file}: {error}")
            failed += 1
            continue
        for changed, edits in found.items():
            text = apply_edits(changed.read_text(), edits)
            changed.write_text(text)
            analyzer.show(changed, text)
        for old, new in moves:
            if not old.exists():
                continue
            files = [old] if old.is_file() else sorted(old.rglob("*.rs"))
            subprocess.run(["git", "mv", old, new], check=True, cwd=ROOT)
            for before in files:
                analyzer.moved(before, new if old == before else new / before.relative_to(old))
        print(f"{crate}/{file} -> {stem}: {sum(map(len, found.values()))} in {len(found)} files", flush=True)
    return failed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--analyzer", default="rust-analyzer")
    parser.add_argument("--std")
    parser.add_argument("--only")
    parser.add_argument("table", nargs="?", default=pathlib.Path(__file__).with_name("table.tsv"), type=pathlib.Path)
    options = parser.parse_args()
    table = list(rows(options.table, options.only))
    analyzer = Analyzer(options.analyzer, options.std)
    failed = rename_items(analyzer, table) + move_modules(analyzer, table)
    analyzer.close()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

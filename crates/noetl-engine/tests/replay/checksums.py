#!/usr/bin/env python3
"""Recomputes the checksums of the golden files beside it, from the rules alone.

    checksums.py          fails when a file holds another checksum
    checksums.py --write  writes the checksums into the files

It shares no code with the fold: the canonical text, with its form of floats, is written here again.
"""

import hashlib
import json
import pathlib
import sys

PARTS = {
    "business_object": "business_objects",
    "command": "commands",
    "execution": "execution",
    "frame": "frames",
    "loop": "loops",
    "stage": "stages",
}
SHORT = {"\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "\\": "\\\\"}


def number(value):
    """Shortest digits; plain from 1e-5 to below 1e16, else with a signed exponent."""
    if isinstance(value, int):
        return str(value)
    text = repr(value)
    sign, text = ("-", text[1:]) if text.startswith("-") else ("", text)
    mantissa, _, exponent = text.partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = whole + fraction
    point = len(whole) + int(exponent or 0)
    stripped = digits.lstrip("0")
    point -= len(digits) - len(stripped)
    digits = stripped.rstrip("0")
    if not digits:
        return sign + "0.0"
    if -5 <= point - 1 <= 15:
        if point <= 0:
            return sign + "0." + "0" * -point + digits
        return sign + digits[:point].ljust(point, "0") + "." + (digits[point:] or "0")
    head = digits[0] + ("." + digits[1:] if digits[1:] else "")
    power = point - 1
    return f"{sign}{head}e{'+' if power > 0 else ''}{power}"


def string(text):
    def escaped(character):
        if character in SHORT:
            return SHORT[character]
        return f"\\u{ord(character):04x}" if ord(character) < 0x20 else character

    return '"' + "".join(map(escaped, text)) + '"'


def canonical(value):
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, (int, float)):
        return number(value)
    if isinstance(value, str):
        return string(value)
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    fields = sorted(value.items(), key=lambda field: field[0].encode())
    return "{" + ",".join(f"{string(key)}:{canonical(item)}" for key, item in fields) + "}"


def digest(value):
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def checksum(value):
    return {"type": "sha256", "value": digest(value)}


def checksums(state):
    parts = {name: checksum(state[part]) for name, part in PARTS.items()}
    bare = {key: value for key, value in state.items() if key != "checksum"}
    return {"checksum": checksum({**bare, "projection_checksums": parts}), "projection_checksums": parts}


def wrong_in(path, write):
    golden = json.loads(path.read_text(encoding="utf-8"))
    wrong = []
    for vector in golden.get("vectors", []):
        if digest(vector["value"]) != vector["sha256"]:
            wrong.append(f"{path.name}: {canonical(vector['value'])}")
        if canonical(vector["value"]) != vector.get("text", canonical(vector["value"])):
            wrong.append(f"{path.name}: {canonical(vector['value'])}")
    if "state" not in golden:
        return wrong
    right = checksums(golden["state"])
    if write:
        text = path.read_text(encoding="utf-8")
        head, mark, _ = text.partition(',\n  "checksums":')
        if not mark:
            head = text.rstrip().removesuffix("}").rstrip()
        lines = json.dumps(right, indent=2).replace("\n", "\n  ")
        path.write_text(f'{head},\n  "checksums": {lines}\n}}\n', encoding="utf-8")
    elif golden.get("checksums") != right:
        wrong.append(f"{path.name}: its checksums are {json.dumps(right)}")
    return wrong


def main():
    write = sys.argv[1:] == ["--write"]
    paths = sorted(pathlib.Path(__file__).parent.glob("*.json"))
    wrong = [line for path in paths for line in wrong_in(path, write)]
    print("\n".join(wrong) or f"{len(paths)} files")
    return 1 if wrong or not paths else 0


sys.exit(main())

"""Draws where time goes: a flame graph of what `perf script` says.

    perf script --no-inline -F comm,ip,sym | flame.py TITLE > graph.svg

A box is a function, as wide as the share of samples it or what it called was seen in; callers are below.
Each thread's name is at the bottom. A box says its whole name and its share where one points at it.
"""

import html
import re
import sys

WIDTH, ROW, TOP = 1200, 17, 30
# Boxes narrower than this are left out, and so is what stands on them.
NARROWEST = 0.6
# Which colour a function has, by what its name holds; the first that fits.
COLOURS = [
    (r"^thread ", "#8da0cb"),
    (r"sqlite3|pcache|^wal|Btree|vdbe|pager|^moveTo|^balance", "#fc8d62"),
    (r"noetl_|noetl::", "#66c2a5"),
    (r"minijinja|serde_json|indexmap", "#a6d854"),
    (r"tokio|futures|mio::", "#b3cde3"),
    (r"^_?mi_|malloc|free|memmove|memset|memcpy|memcmp", "#ffd92f"),
    (r"sys_|ext4|futex|vfs|folio|_raw_spin|entry_|irq|schedule|blk_|submit_bio", "#bdbdbd"),
]
OTHER = "#e5c494"


class Box:
    def __init__(self):
        self.samples, self.above = 0, {}


def simple(name):
    """A name without generics, hashes and offsets."""
    name = re.sub(r"\+0x[0-9a-f]+$", "", name)
    name = re.sub(r"::h[0-9a-f]{16}$", "", name)
    name = name.replace("{{closure}}", "{}")
    while True:
        shorter = re.sub(r"<[^<>]*>", "", name)
        if shorter == name:
            return name.replace("::::", "::").strip() or "?"
        name = shorter


def stacks(lines):
    """The stacks, each from its thread's name to the innermost function."""
    thread, frames = None, []
    for line in lines:
        if not line.strip():
            if thread and frames:
                yield [f"thread {thread}", *reversed(frames)]
            thread, frames = None, []
        elif line[0] in " \t":
            address, _, name = line.strip().partition(" ")
            if name and name != "[unknown]":
                frames.append(simple(name))
        else:
            thread = line.strip()
    if thread and frames:
        yield [f"thread {thread}", *reversed(frames)]


def colour(name):
    return next((colour for pattern, colour in COLOURS if re.search(pattern, name)), OTHER)


def draw(box, x, width, level, whole, out):
    for title, child in sorted(box.above.items()):
        wide = width * child.samples / box.samples
        if wide >= NARROWEST:
            out.append((title, child.samples / whole, x, wide, level))
            draw(child, x, wide, level + 1, whole, out)
        x += wide


def main():
    root = Box()
    for stack in stacks(sys.stdin):
        root.samples += 1
        box, before = root, None
        for name in stack:
            # A function that calls itself is one box.
            if name == before:
                continue
            before = name
            box = box.above.setdefault(name, Box())
            box.samples += 1
    if root.samples == 0:
        sys.exit("there is no sample: give what `perf script --no-inline -F comm,ip,sym` says")
    boxes = []
    draw(root, 0.0, float(WIDTH), 0, root.samples, boxes)
    height = TOP + ROW * (max(level for *_, level in boxes) + 1)
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="monospace" font-size="11">')
    print(f'<rect width="{WIDTH}" height="{height}" fill="white"/>')
    print(f'<text x="4" y="19" font-size="14">{html.escape(sys.argv[1])}: {root.samples} samples</text>')
    for name, share, x, wide, level in boxes:
        y = height - ROW * (level + 1)
        text = html.escape(name[: int(wide / 6.7)]) if wide > 24 else ""
        print(f'<g><title>{html.escape(name)}: {share:.1%}</title>'
              f'<rect x="{x:.1f}" y="{y}" width="{wide:.1f}" height="{ROW - 1}" fill="{colour(name)}" stroke="white" stroke-width="0.4"/>'
              f'<text x="{x + 2:.1f}" y="{y + 12}">{text}</text></g>')
    print("</svg>")


main()

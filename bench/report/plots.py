"""Plots as SVG, by hand: horizontal bars on a logarithmic axis when values are far apart."""

import math
from xml.sax.saxutils import escape

WIDTH, LABEL, VALUE, ROW, TOP = 760, 230, 110, 26, 44

# Readable on white and on black; what is ours stands out.
STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#57606a}"
    ".title{font-weight:600}.own{fill:#2f81f7}.other{fill:#8b949e}"
    "@media(prefers-color-scheme:dark){text{fill:#c9d1d9}}"
)


def bars(title, unit, rows):
    """Rows are name, value, and whether it is ours."""
    largest = max(value for _, value, _ in rows)
    smallest = min(value for _, value, _ in rows if value > 0)
    is_log = largest / smallest > 30
    room = WIDTH - LABEL - VALUE

    def length(value):
        if value <= 0:
            return 0
        if is_log:
            floor = math.log10(smallest) - 0.5
            return room * (math.log10(value) - floor) / (math.log10(largest) - floor)
        return room * value / largest

    height = TOP + ROW * len(rows) + 10
    note = f"{title}{' (logarithmic)' if is_log else ''}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        f"<title>{escape(note)}</title><style>{STYLE}</style>",
        f'<text class="title" x="8" y="22">{escape(note)}</text>',
    ]
    for place, (name, value, is_own) in enumerate(rows):
        top = TOP + ROW * place
        kind = "own" if is_own else "other"
        shown = f"{value:,.0f}".replace(",", " ") if value >= 100 else f"{value:.2f}"
        parts += [
            f'<text x="{LABEL - 8}" y="{top + 14}" text-anchor="end">{escape(name)}</text>',
            f'<rect class="{kind}" x="{LABEL}" y="{top}" width="{length(value):.1f}" height="{ROW - 8}" rx="2"/>',
            f'<text x="{LABEL + length(value) + 6:.1f}" y="{top + 14}">{shown} {escape(unit)}</text>',
        ]
    return "\n".join([*parts, "</svg>", ""])

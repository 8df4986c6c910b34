"""Plots as SVG, by hand: horizontal bars on a logarithmic axis when values are far apart."""

import math
from xml.sax.saxutils import escape

WIDTH, LABEL, VALUE, ROW, TOP = 760, 290, 110, 26, 44

# Readable on white and on black; what is ours stands out.
STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#57606a}"
    ".title{font-weight:600}.spread{stroke:#d29922;stroke-width:2}.own{fill:#2f81f7}.other{fill:#8b949e}"
    "@media(prefers-color-scheme:dark){text{fill:#c9d1d9}}"
)


def bars(title, unit, rows):
    """Draws rows of name, value, whether it is ours, and the lowest and highest value of several runs."""
    largest = max(high for *_, high in rows)
    smallest = min(low for *_, low, _ in rows if low > 0)
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
    for place, (name, value, is_own, low, high) in enumerate(rows):
        top = TOP + ROW * place
        kind = "own" if is_own else "other"
        shown = f"{value:,.0f}".replace(",", " ") if value >= 100 else f"{value:.2f}"
        parts += [
            f'<text x="{LABEL - 8}" y="{top + 14}" text-anchor="end">{escape(name)}</text>',
            f'<rect class="{kind}" x="{LABEL}" y="{top}" width="{length(value):.1f}" height="{ROW - 8}" rx="2"/>',
            f'<text x="{LABEL + length(high) + 6:.1f}" y="{top + 14}">{shown} {escape(unit)}</text>',
        ]
        if low != high:
            parts.append(f'<path class="spread" d="M{LABEL + length(low):.1f} {top + 9}H{LABEL + length(high):.1f}"/>')
    return "\n".join([*parts, "</svg>", ""])

"""Compares ratios of a run with the committed ones; exits with 1 when one is outside its band.

    check.py RATIOS LINES...           compare
    check.py RATIOS LINES... --write   keep what was measured as the committed ones

A ratio says how something relates to something else of the same run, or counts what does not depend on
the machine. Times do neither and are not compared.
"""

import json
import sys
from pathlib import Path


def key(line):
    return line["bench"], line["store"]


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--write"]
    page, files = Path(arguments[0]), arguments[1:]
    expected = json.loads(page.read_text())
    found = {}
    for file in files:
        for text in Path(file).read_text().splitlines():
            if text.startswith("{"):
                line = json.loads(text)
                found[key(line)] = line
    wrong = 0
    for ratio in expected["ratios"]:
        line = found.get((ratio["bench"], ratio["store"]), {})
        value, name = line.get(ratio["field"]), f"{ratio['bench']} {ratio['store']} {ratio['field']}"
        if value is None:
            print(f"  missing {name}: it was not measured", file=sys.stderr)
            wrong += 1
            continue
        if "--write" in sys.argv:
            ratio["value"] = value
        if ratio["value"] is None:
            print(f"  unknown {name}: {value}, and none is committed; --write keeps it", file=sys.stderr)
            wrong += 1
            continue
        # A share is worse when it is smaller, a cost when it is larger; better is never wrong.
        worse = ratio["value"] / value if ratio["better"] == "larger" else value / ratio["value"]
        is_wrong = worse > ratio["worse_by_at_most"]
        wrong += is_wrong
        sign = "WRONG  " if is_wrong else "ok     "
        print(f"  {sign} {name}: {value}, committed {ratio['value']}, "
              f"may be {ratio['worse_by_at_most']} times worse", file=sys.stderr)
    if "--write" in sys.argv:
        rows = ",\n".join(f"    {json.dumps(ratio)}" for ratio in expected["ratios"])
        page.write_text(f'{{\n  "ratios": [\n{rows}\n  ]\n}}\n')
    sys.exit(1 if wrong else 0)


main()

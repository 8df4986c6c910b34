"""Prints what Helm gives to the templates of a chart: its values with others laid over them, and a release.

values.py CHART OVER, where OVER is JSON.
"""

import json
import pathlib
import sys

import yaml


def laid_over(below: object, above: object) -> object:
    """Maps merge, all else replaces."""
    if not (isinstance(below, dict) and isinstance(above, dict)):
        return above
    return below | {key: laid_over(below.get(key), value) for key, value in above.items()}


chart = pathlib.Path(sys.argv[1])
about = yaml.safe_load((chart / "Chart.yaml").read_text())
values = laid_over(yaml.safe_load((chart / "values.yaml").read_text()), json.loads(sys.argv[2]))
print(
    json.dumps(
        {
            "Release": {"Name": "flows", "Namespace": "default"},
            "Chart": {"Name": about["name"], "AppVersion": about["appVersion"]},
            "Values": values,
        }
    )
)

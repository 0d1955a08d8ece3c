"""Whether runs ended with the same figures: reads what `roux runs show RUN --format json` printed of each, one after the
other. Prints "same", or each figure that differs by more than rounding does.

    for run in whole parts; do roux runs show $run --format json; done | python3 same_figures.py
"""

import json
import math
import sys

text, runs = sys.stdin.read(), []
while text.strip():
    run, end = json.JSONDecoder().raw_decode(text := text.lstrip())
    runs.append({name: value for name, value in run["summary"].items() if "loss" in name or name.startswith("val/")})
    text = text[end:]
if len(runs) < 2:
    sys.exit("there is nothing to compare")
told = [f"{name}: {runs[0].get(name)} {run.get(name)}" for run in runs[1:] for name in sorted(runs[0] | run)
        if not math.isclose(runs[0].get(name, math.nan), run.get(name, math.nan), rel_tol=1e-4, abs_tol=1e-5)]
print("\n".join(told) or "same")

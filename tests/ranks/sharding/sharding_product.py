#!/usr/bin/env python3
"""Trains all that a recipe combines with sharding beside one process (`tests_torch "[sharding-product]"`), on ranks that
are threads, and says how far each row was from it. By name: a quarter of an hour.

usage: sharding_product.py BUILD [--json FILE]
"""
import argparse
import json
import os
import pathlib
import subprocess
import tempfile
import time

from sharded_saves import machine

COLUMNS = ("shard", "shards x copies", "precision", "accumulation", "recomputed", "model")
ROWS = 3 * 4 * 2 * 2 * 2 * 3


def trained(build):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "rows")
        code = subprocess.run([build / "bin/tests_torch", "[sharding-product]"],
                              env=dict(os.environ, ROUX_TEST_ROWS=str(path))).returncode
        return code, [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def of_farthest_steps(rows, most=1.5):
    """How far chance goes where a single training's farthest step is compared, which decides nothing."""
    what = "the same of each seed's farthest step"
    ratios = sorted((ratio, " ".join(row["row"])) for row in rows for ratio in row.get(what, []))
    return {"trainings": len(ratios), "median": ratios[len(ratios) // 2][0] if ratios else None,
            f"more than {most}": [f"{ratio:.2f}: {row}" for ratio, row in reversed(ratios) if ratio > most]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path)
    a = parser.parse_args()
    build, began = a.build.resolve(), time.monotonic()
    code, rows = trained(build)
    figures = {}
    for row in rows:
        for what, figure in row.items():
            if isinstance(figure, float):
                figures.setdefault(what, []).append((figure, " ".join(row["row"])))
    result = {**machine(str(build / "bin/roux")), "minutes": round((time.monotonic() - began) / 60, 1),
              "columns": COLUMNS, "rows": len(rows),
              "largest": {what: {"figure": max(of_rows)[0], "row": max(of_rows)[1], "rows": len(of_rows)}
                          for what, of_rows in figures.items()},
              "bf16-mixed, each seed's farthest step alone": of_farthest_steps(rows),
              "wrong": [{**row, "row": " ".join(row["row"])} for row in rows if row["wrong"]]}
    if a.json:
        a.json.write_text(json.dumps(result, indent=1) + "\n")
    for what, one in result["largest"].items():
        print(f"{what}: {one['figure']:.2g} at most, of {one['rows']} rows")
    held = len(rows) - len(result["wrong"])
    print(f"{held} of {ROWS} rows hold")
    return 1 if code or held != ROWS else 0


if __name__ == "__main__":
    raise SystemExit(main())

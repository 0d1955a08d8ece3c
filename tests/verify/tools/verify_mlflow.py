#!/usr/bin/env python3
"""Read an MLflow store with the MLflow client and print JSON.

usage: verify_mlflow.py URI [RUN_ID]
URI: http://127.0.0.1:5000 | sqlite:///mlflow.db | ./mlruns (set MLFLOW_ALLOW_FILE_STORE=true for a directory)
"""

import json, math, sys


def num(x):
    return x if math.isfinite(x) else ("nan" if math.isnan(x) else "inf" if x > 0 else "-inf")


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    from mlflow import MlflowClient

    c = MlflowClient(sys.argv[1])
    out = []
    for e in c.search_experiments():
        for r in c.search_runs([e.experiment_id], max_results=1000):
            if len(sys.argv) == 3 and r.info.run_id != sys.argv[2]:
                continue
            try:
                arts, folders = {}, [""]
                while folders:
                    for a in c.list_artifacts(r.info.run_id, folders.pop() or None):
                        folders.append(a.path) if a.is_dir else arts.update({a.path: a.file_size})
            except Exception as ex:  # the artifact root may be somewhere else
                arts = {"error": str(ex)}
            out.append(
                {
                    "experiment": e.name,
                    "run_id": r.info.run_id,
                    "name": r.info.run_name,
                    "status": r.info.status,
                    "start": r.info.start_time,
                    "end": r.info.end_time,
                    "params": r.data.params,
                    "tags": r.data.tags,
                    "last": {k: num(v) for k, v in r.data.metrics.items()},
                    "history": {
                        k: [[m.step, num(m.value), m.timestamp] for m in c.get_metric_history(r.info.run_id, k)]
                        for k in r.data.metrics
                    },
                    "artifacts": arts,
                    "datasets": [d.dataset.name for d in r.inputs.dataset_inputs] if r.inputs else [],
                }
            )
    json.dump(out, sys.stdout, indent=1, sort_keys=True)
    print()
    if not out:
        sys.exit(1)


main()

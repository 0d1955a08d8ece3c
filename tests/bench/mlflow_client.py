"""Points per second that MLflow's own client brings to the server of MLFLOW_TRACKING_URI, in batches as large as it takes:
mlflow_client.py POINTS -> one JSON line."""
import json
import sys
import time

from mlflow import MlflowClient
from mlflow.entities import Metric

BATCH = 1000
points = int(sys.argv[1])
client = MlflowClient()
run = client.create_run(client.create_experiment("client %d" % time.time_ns()))
begin = time.perf_counter()
for at in range(0, points, BATCH):
    now_ms = int(time.time() * 1000)
    client.log_batch(run.info.run_id, [Metric("loss", i / 2, now_ms, i) for i in range(at, min(points, at + BATCH))])
print(json.dumps({"points_per_s": points / (time.perf_counter() - begin)}))

#!/usr/bin/env python3
"""Read a Comet offline archive (EXPERIMENT.zip) and print JSON.

usage: verify_comet.py EXPERIMENT.zip [--upload]
Every message is checked with the JSON schemas that come with comet_ml; `--upload` also runs `comet upload` against a
stand-in server started here on 127.0.0.1 and prints what arrived.  Needs: comet_ml (see requirements.txt).
"""

import collections, gzip, http.server, json, os, subprocess, sys, tempfile, threading, shutil, zipfile

SCHEMA = {
    "metric_msg": "metric-msg",
    "parameter_msg": "parameter-msg",
    "log_other": "log-other-msg",
    "file_upload": "file-upload-msg",
    "standard_output": "standard-output-msg",
    "file_name": "file-name-msg",
    "git_metadata": "git-metadata-msg",
    "system_details": "system-details-msg",
}


def schemas():
    import importlib.util
    from jsonschema import Draft7Validator

    d = os.path.join(os.path.dirname(importlib.util.find_spec("comet_ml").origin), "schemas")
    return lambda n: Draft7Validator(json.load(open(os.path.join(d, f"offline-{n}.schema.json"))))


def upload(path):
    log = collections.Counter()
    metrics, params, others = [], [], {}

    class H(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *a):
            pass

        def go(self):
            b = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.headers.get("Content-Encoding") == "gzip":
                b = gzip.decompress(b)
            p, o = self.path.split("?")[0], {}
            log[p] += 1
            if p.endswith("/logger/add/run"):
                o = {
                    "runId": "R",
                    "experimentId": "E",
                    "url": "http://127.0.0.1",
                    "link": "http://127.0.0.1",
                    "workspaceName": "w",
                    "projectName": "p",
                    "projectId": "P",
                    "project_id": "P",
                    "featureToggles": [],
                    "fullMetricsEnabled": True,
                    "initialOffset": 0,
                }
            elif p.endswith("/status-report/update"):
                o = {
                    "is_alive_beat_duration_millis": 10000,
                    "gpu_monitor_interval_millis": 10000,
                    "cpu_monitor_interval_millis": 10000,
                    "parameter_update_interval_millis": 10000,
                }
            elif p.endswith("/isAlive/ver"):
                o = {"version": "5.0.0", "msg": "5.0.0"}
            elif p.endswith("/experiment/metric"):
                metrics.extend(json.loads(b)["values"])
            elif p.endswith("/experiment/parameter"):
                params.extend(json.loads(b)["values"])
            elif p.endswith("/experiment/log-other"):
                j = json.loads(b)
                others[j["key"]] = j["value"]
            r = json.dumps(o).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(r)))
            self.end_headers()
            self.wfile.write(r)

        do_GET = do_POST = do_PUT = go

    class S(http.server.ThreadingHTTPServer):
        def handle_error(self, *a):
            pass

    s = S(("127.0.0.1", 0), H)
    threading.Thread(target=s.serve_forever, daemon=True).start()
    here = os.path.join(os.path.dirname(sys.executable), "comet")
    with tempfile.TemporaryDirectory() as t:
        z = shutil.copy(path, t)
        env = dict(
            os.environ,
            COMET_URL_OVERRIDE="http://127.0.0.1:%d/clientlib/" % s.server_port,
            COMET_API_KEY="0" * 25,
            HOME=t,
        )
        r = subprocess.run(
            [here if os.path.exists(here) else "comet", "upload", z],
            env=env,
            cwd=t,
            capture_output=True,
            text=True,
            timeout=180,
        )
    s.shutdown()
    text = r.stdout + r.stderr
    return {
        "uploaded": "Number of uploaded experiments: 1" in text,
        "errors": [l for l in text.splitlines() if "ERROR" in l],
        "calls": dict(log),
        "metrics": [[m["metricName"], m["metricValue"], m["step"]] for m in metrics],
        "params": {p["parameterName"]: p["parameterValue"] for p in params},
        "other": others,
    }


def main():
    args = [a for a in sys.argv[1:] if not a.startswith("--")]
    if len(args) != 1:
        sys.exit(__doc__)
    get, z, problems = schemas(), zipfile.ZipFile(args[0]), []
    exp = json.loads(z.read("experiment.json"))
    problems += ["experiment.json: " + e.message for e in get("experiment").iter_errors(exp)]
    kinds, metrics, params, other, files, cache = collections.Counter(), {}, {}, {}, [], {}
    for n, line in enumerate(z.read("messages.json").decode().splitlines(), 1):
        try:
            m = json.loads(line)
        except ValueError as e:
            problems.append(f"messages.json line {n}: {e}")
            continue
        kinds[m["type"]] += 1
        p = m["payload"]
        if m["type"] in SCHEMA:
            v = cache.setdefault(m["type"], get(SCHEMA[m["type"]]))
            problems += [f"line {n}: {e.message}" for e in v.iter_errors(p)]
        if m["type"] == "metric_msg":
            metrics.setdefault(p["metric"]["metricName"], []).append([p["metric"]["step"], p["metric"]["metricValue"]])
        elif m["type"] == "parameter_msg":
            params[p["param"]["paramName"]] = p["param"]["paramValue"]
        elif m["type"] == "log_other":
            other[p["key"]] = p["value"]
        elif m["type"] == "file_upload":
            files.append([p["upload_type"], p["file_path"]])
            if p["file_path"] not in z.namelist():
                problems.append(f"line {n}: {p['file_path']} is not in the archive")
    out = {
        "experiment": exp,
        "kinds": dict(kinds),
        "metrics": metrics,
        "params": params,
        "other": other,
        "files": files,
        "problems": problems,
    }
    ok = not problems
    if "--upload" in sys.argv:
        out["upload"] = upload(args[0])
        ok &= out["upload"]["uploaded"] and not out["upload"]["errors"]
    json.dump(out, sys.stdout, indent=1)
    print()
    sys.exit(0 if ok else 1)


main()

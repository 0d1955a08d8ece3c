#!/usr/bin/env python3
"""Read a ClearML offline session (offline-ID.zip) and print JSON.

usage: verify_clearml.py OFFLINE.zip [--import]
`--import` also runs Task.import_offline_session against a stand-in server started here on 127.0.0.1, and prints what
arrived.
Needs: clearml (see requirements.txt) for --import only.
"""

import base64, collections, http.server, json, os, subprocess, sys, tempfile, threading, time, zipfile


def b64(o):
    return base64.urlsafe_b64encode(json.dumps(o).encode()).decode().rstrip("=")


def do_import(path):
    calls, events, edits, uploads = collections.Counter(), [], {}, []
    now = int(time.time())
    token = (
        b64({"alg": "HS256", "typ": "JWT"})
        + "."
        + b64(
            {
                "exp": now + 99999,
                "iat": now,
                "auth_type": "Bearer",
                "api_version": "2.31",
                "server_version": "2.0",
                "server_build": "1",
                "feature_set": "basic",
                "env": "stand-in",
                "identity": {"user": "u", "company": "c", "role": "user"},
            }
        )
        + ".c2ln"
    )
    task = {
        "id": "T1",
        "name": "n",
        "type": "training",
        "status": "created",
        "project": "P1",
        "script": {},
        "execution": {},
        "hyperparams": {},
        "configuration": {},
        "tags": [],
        "system_tags": [],
        "output": {"destination": ""},
        "user": "u",
        "company": "c",
        "runtime": {},
    }

    class H(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *a):
            pass

        def go(self):
            b = b""
            if self.headers.get("Transfer-Encoding") == "chunked":
                while True:
                    n = int(self.rfile.readline(), 16)
                    b += self.rfile.read(n)
                    self.rfile.readline()
                    if not n:
                        break
            else:
                b = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            p = self.path.split("/")[-1].split("?")[0]
            calls[p or "upload"] += 1
            d = {"updated": 1, "started": 1, "fields": {}}
            if p == "auth.login":
                d = {"token": token}
            elif p in ("tasks.create", "projects.create"):
                d = {"id": "T1" if p.startswith("t") else "P1"}
            elif p == "tasks.get_by_id":
                d = {"task": task}
            elif p == "tasks.get_all":
                d = {"tasks": [task]}
            elif p == "tasks.edit":
                j = json.loads(b)
                task.update({k: v for k, v in j.items() if k not in ("task", "force", "method")})
                edits.update(j)
            elif p == "projects.get_all":
                d = {"projects": []}
            elif p == "events.add_batch":
                events.extend(json.loads(l) for l in b.decode().splitlines() if l)
                d = {"added": 1, "errors": 0, "errors_info": {}}
            elif not p and self.command == "POST":
                uploads.append(len(b))
            r = json.dumps(
                {
                    "meta": {
                        "id": "1",
                        "trx": "1",
                        "endpoint": {"name": p, "requested_version": "2.31", "actual_version": "2.31"},
                        "result_code": 200,
                        "result_subcode": 0,
                        "result_msg": "OK",
                        "error_stack": "",
                        "error_data": {},
                    },
                    "data": d,
                }
            ).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(r)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(r)

        do_GET = do_POST = do_PUT = do_HEAD = go

    class S(http.server.ThreadingHTTPServer):
        def handle_error(self, *a):
            pass

    s = S(("127.0.0.1", 0), H)
    threading.Thread(target=s.serve_forever, daemon=True).start()
    u = "http://127.0.0.1:%d" % s.server_port
    with tempfile.TemporaryDirectory() as t:
        env = dict(
            os.environ,
            HOME=t,
            CLEARML_API_HOST=u,
            CLEARML_WEB_HOST=u,
            CLEARML_FILES_HOST=u,
            CLEARML_API_ACCESS_KEY="k",
            CLEARML_API_SECRET_KEY="s",
        )
        r = subprocess.run(
            [
                sys.executable,
                "-c",
                "import sys\nfrom clearml import Task\nprint('IMPORTED', Task.import_offline_session(sys.argv[1]))",
                os.path.abspath(path),
            ],
            env=env,
            cwd=t,
            capture_output=True,
            text=True,
            timeout=180,
        )
    s.shutdown()
    return {
        "imported": "IMPORTED T1" in r.stdout,
        "stderr": r.stderr[-800:],
        "calls": dict(calls),
        "uploads": uploads,
        "task": {k: edits.get(k) for k in ("name", "type", "tags", "comment", "hyperparams", "configuration")},
        "scalars": [
            [e["metric"], e["variant"], e["iter"], e["value"]]
            for e in events
            if e.get("type") == "training_stats_scalar"
        ],
        "other_events": [
            [e.get("type"), e.get("metric"), e.get("variant"), e.get("iter")]
            for e in events
            if e.get("type") != "training_stats_scalar"
        ],
    }


def main():
    args = [a for a in sys.argv[1:] if not a.startswith("--")]
    if len(args) != 1:
        sys.exit(__doc__)
    z, problems = zipfile.ZipFile(args[0]), []
    task = json.loads(z.read("task.json"))
    ev = {}
    for name in ("metrics.jsonl", "log.jsonl"):
        ev[name] = []
        if name in z.namelist():
            for n, line in enumerate(z.read(name).decode().splitlines(), 1):
                try:
                    ev[name] += json.loads(line)
                except ValueError as e:
                    problems.append(f"{name} line {n}: {e}")
    for e in ev["metrics.jsonl"]:
        if e.get("task") != task["id"]:
            problems.append("event of another task (it would be dropped): " + str(e.get("task")))
        if e.get("type") == "training_debug_image" and "data/" + e["key"] not in z.namelist():
            problems.append("missing file data/" + e["key"])
    out = {
        "task": task,
        "events": dict(collections.Counter(e["type"] for k in ev for e in ev[k])),
        "problems": problems,
    }
    ok = not problems
    if "--import" in sys.argv:
        out["import"] = do_import(args[0])
        ok &= out["import"]["imported"]
    json.dump(out, sys.stdout, indent=1)
    print()
    sys.exit(0 if ok else 1)


main()

#!/usr/bin/env python3
"""Read a W&B offline run (run-ID.wandb) and print JSON.

usage: verify_wandb.py RUN_DIR_OR_FILE [--leet] [--sync]
--leet : also cross-check with `wandb leet inspect --json` (W&B's own reader, no account needed)
--sync : also upload with `wandb sync` to a stand-in server started here on 127.0.0.1, and print what arrived
Needs: wandb (see requirements.txt).  The framing is parsed here with the standard library.
"""

import glob, gzip, http.server, json, os, re, shutil, struct, subprocess, sys, tempfile, threading, zlib

BLOCK = 32768


def records(d, problems):
    if d[:4] != b":W&B" or len(d) < 7 or struct.unpack("<HB", d[4:7]) != (0xBEE1, 0):
        problems.append("bad header")
        return
    o, buf = 7, None
    while o < len(d):
        left = BLOCK - o % BLOCK
        if left < 7:
            if d[o : o + left].strip(b"\0"):
                problems.append(f"non-zero padding at {o}")
            o += left
            continue
        if len(d) - o < 7:
            problems.append(f"truncated chunk header at {o}")
            return
        crc, n, kind = struct.unpack("<IHB", d[o : o + 7])
        body = d[o + 7 : o + 7 + n]
        if n > left - 7 or kind not in (1, 2, 3, 4):
            problems.append(f"bad chunk at {o}")
            return
        if len(body) < n:
            problems.append(f"truncated chunk at {o}")
            return
        if zlib.crc32(bytes([kind]) + body) != crc:
            problems.append(f"crc mismatch at {o}")
            return
        o += 7 + n
        if kind == 1:
            yield body
        elif kind == 2:
            buf = body
        elif kind == 3:
            buf += body
        else:
            yield buf + body
            buf = None
    if buf is not None:
        problems.append("record without a last chunk")


def items(rep):
    out = {}
    for i in rep:
        path = list(getattr(i, "nested_key", [])) or [i.key]  # stats items have no nested_key
        node = out
        for k in path[:-1]:
            node = node.setdefault(k, {})
        node[path[-1]] = json.loads(i.value_json)
    return out


def parse(path):
    from wandb.proto import wandb_internal_pb2 as pb
    from google.protobuf.json_format import MessageToDict

    out = {
        "file": os.path.basename(path),
        "problems": [],
        "order": [],
        "run": None,
        "config": {},
        "history": [],
        "summary": {},
        "metrics": [],
        "files": [],
        "output": [],
        "stats": [],
        "exit": None,
    }
    prev = 0
    for raw in records(open(path, "rb").read(), out["problems"]):
        r = pb.Record()
        r.ParseFromString(raw)
        kind = r.WhichOneof("record_type")
        out["order"].append(kind)
        if r.num != prev + 1:
            out["problems"].append(f"record number {r.num} after {prev}")
        prev = r.num
        m = getattr(r, kind) if kind else None
        if kind == "run":
            out["run"] = {
                "id": m.run_id,
                "project": m.project,
                "entity": m.entity,
                "group": m.run_group,
                "job_type": m.job_type,
                "name": m.display_name,
                "notes": m.notes,
                "tags": list(m.tags),
                "start": m.start_time.ToNanoseconds() / 1e9,
            }
            out["config"].update(items(m.config.update))
        elif kind == "config":
            out["config"].update(items(m.update))
        elif kind == "history":
            out["history"].append({"step": m.step.num, **items(m.item)})
        elif kind == "summary":
            out["summary"].update(items(m.update))
        elif kind == "metric":
            out["metrics"].append(MessageToDict(m, preserving_proto_field_name=True))
        elif kind == "files":
            base = os.path.join(os.path.dirname(path), "files")
            out["files"] += [{"path": f.path, "exists": os.path.exists(os.path.join(base, f.path))} for f in m.files]
        elif kind == "output_raw":
            out["output"].append([m.output_type, m.line])
        elif kind == "stats":
            out["stats"].append(items(m.item))
        elif kind == "exit":
            out["exit"] = {"code": m.exit_code, "runtime": m.runtime}
    return out


def tool():
    p = os.path.join(os.path.dirname(sys.executable), "wandb")
    return p if os.path.exists(p) else "wandb"


def stand_in(log):
    class H(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *a):
            pass

        def reply(self, o):
            b = json.dumps(o).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(b)))
            self.end_headers()
            self.wfile.write(b)

        def body(self):
            b = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            return gzip.decompress(b) if self.headers.get("Content-Encoding") == "gzip" else b

        def do_GET(self):
            self.reply({})

        def do_PUT(self):
            log.append(("file", self.path[len("/upload/") :], len(self.body())))
            self.reply({})

        def do_POST(self):
            b = self.body()
            if not self.path.endswith("/graphql"):
                try:
                    log.append(("stream", json.loads(b)))
                except ValueError:
                    pass
                return self.reply({"exitcode": None, "limits": {}})
            q = json.loads(b)
            op = q.get("operationName") or (re.search(r"(?:query|mutation)\s+(\w+)", q["query"]) or [0, "?"])[1]
            v = q.get("variables") or {}
            if op == "UpsertBucket":
                log.append(("upsert", {k: x for k, x in v.items() if x is not None}))
                bucket = {
                    "id": "Qg==",
                    "name": v.get("name"),
                    "displayName": v.get("displayName") or v.get("name"),
                    "description": "",
                    "config": v.get("config") or "{}",
                    "sweepName": None,
                    "historyLineCount": 0,
                    "project": {
                        "id": "UA==",
                        "name": v.get("project"),
                        "entity": {"id": "RQ==", "name": v.get("entity") or "stand-in"},
                    },
                }
                return self.reply({"data": {"upsertBucket": {"bucket": bucket, "inserted": True}}})
            if op == "CreateRunFiles":
                url = "http://127.0.0.1:%d/upload/" % self.server.server_port
                return self.reply(
                    {
                        "data": {
                            "createRunFiles": {
                                "runID": "Qg==",
                                "uploadHeaders": [],
                                "files": [{"name": f, "uploadUrl": url + f} for f in v["files"]],
                            }
                        }
                    }
                )
            if op == "ServerFeaturesQuery":
                return self.reply({"data": {"serverInfo": {"features": []}}})
            self.reply(
                {
                    "data": {
                        "viewer": {
                            "id": "VQ==",
                            "entity": "stand-in",
                            "username": "stand-in",
                            "flags": "{}",
                            "teams": {"edges": []},
                        },
                        "serverInfo": None,
                        "project": None,
                    }
                }
            )

    class S(http.server.ThreadingHTTPServer):
        def handle_error(self, *a):
            pass

    s = S(("127.0.0.1", 0), H)
    threading.Thread(target=s.serve_forever, daemon=True).start()
    return s


def sync(run_dir):
    log = []
    s = stand_in(log)
    with tempfile.TemporaryDirectory() as t:
        d = os.path.join(t, os.path.basename(os.path.abspath(run_dir)))
        shutil.copytree(run_dir, d, ignore=shutil.ignore_patterns("*.synced", "*.syncstate"))
        env = dict(
            os.environ,
            WANDB_BASE_URL="http://127.0.0.1:%d" % s.server_port,
            WANDB_API_KEY="0" * 40,
            WANDB_ERROR_REPORTING="false",
            WANDB_CONFIG_DIR=t,
            WANDB_CACHE_DIR=t,
            WANDB_DATA_DIR=t,
        )
        r = subprocess.run([tool(), "sync", "--yes", d], env=env, cwd=t, capture_output=True, text=True, timeout=180)
        synced = bool(glob.glob(os.path.join(d, "*.synced")))
    s.shutdown()
    hist, summary, exitcode = [], None, None
    for kind, *rest in log:
        if kind == "stream":
            for name, c in (rest[0].get("files") or {}).items():
                if name == "wandb-history.jsonl":
                    hist += [json.loads(x) for x in c["content"]]
                elif name == "wandb-summary.json":
                    summary = json.loads(c["content"][-1])
            if rest[0].get("complete"):
                exitcode = rest[0].get("exitcode")
    return {
        "marked_synced": synced,
        "errors": [l for l in r.stderr.splitlines() if "ERROR" in l],
        "upsert": next((x[1] for x in log if x[0] == "upsert"), None),
        "history_rows": len(hist),
        "history": hist,
        "summary": summary,
        "exitcode": exitcode,
        "files": sorted(x[1] for x in log if x[0] == "file"),
    }


def main():
    args = [a for a in sys.argv[1:] if not a.startswith("--")]
    if len(args) != 1:
        sys.exit(__doc__)
    path = args[0]
    if os.path.isdir(path):
        path = sorted(glob.glob(os.path.join(path, "*.wandb")))[0]
    out = parse(path)
    ok = not out["problems"] and out["run"] is not None
    if "--leet" in sys.argv:
        r = subprocess.run([tool(), "leet", "inspect", "--json", path], capture_output=True, text=True)
        out["leet_records"] = sum(1 for l in r.stdout.splitlines() if l.startswith("{"))
        ok &= out["leet_records"] == len(out["order"])
    if "--sync" in sys.argv:
        out["sync"] = sync(os.path.dirname(os.path.abspath(path)))
        ok &= out["sync"]["marked_synced"] and not out["sync"]["errors"]
    json.dump(out, sys.stdout, indent=1)
    print()
    sys.exit(0 if ok else 1)


main()

"""The Hub's cache in both directions: what roux fetches, the pinned huggingface_hub and Transformers use, and the other
way round. Both ask a server on this machine that answers as the Hub does; the real Hub is not asked.

usage: hub.py ROUX [MODEL]     MODEL: a folder of tests/parity/models
"""
import hashlib
import http.server
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

COMMIT = "c0ffee" + "0" * 34
NAME = "ada/tiny"
PIECE = 4096


def git_hash(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class Hub:
    """Serves a folder as the repository ada/tiny; `large` files are redirected to a storage on another port."""

    def __init__(self, folder):
        self.files = {p.name: p.read_bytes() for p in Path(folder).iterdir() if p.is_file()}
        self.asked = []
        self.held_after = None  # bytes of a large file after which the storage waits for `release`
        self.release = threading.Event()
        self.held = threading.Event()
        self.storage = self.serve(self.answer_storage)
        self.endpoint = self.serve(self.answer)

    def serve(self, answer):
        hub = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                hub.asked.append((self.command, self.path))
                answer(self)

            do_HEAD = do_GET

            def log_message(self, *args):
                pass

            def reply(self, status, body=b"", headers=()):
                self.send_response(status)
                for key, value in headers:
                    self.send_header(key, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command == "HEAD":
                    return
                for at in range(0, len(body), PIECE):
                    if hub.held_after is not None and at >= hub.held_after:
                        hub.held.set()
                        hub.release.wait()
                    self.wfile.write(body[at:at + PIECE])

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.handle_error = lambda *_: None  # a client was killed
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}"

    def entry(self, name):
        content = self.files[name]
        entry = {"type": "file", "path": name, "size": len(content), "oid": git_hash(content)}
        if self.is_large(name):
            entry["lfs"] = {"oid": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 130}
        return entry

    def is_large(self, name):
        return name.endswith((".safetensors", ".bin"))

    def answer(self, request):
        path = request.path.split("?")[0]
        if path.startswith(f"/api/models/{NAME}/tree/"):
            return request.reply(200, json.dumps([self.entry(name) for name in sorted(self.files)]).encode())
        if path.startswith(f"/api/models/{NAME}"):
            siblings = [{"rfilename": name} for name in sorted(self.files)]
            return request.reply(200, json.dumps({"id": NAME, "sha": COMMIT, "siblings": siblings}).encode())
        name = path.rsplit("/", 1)[1]
        if name not in self.files:
            return request.reply(404, b"", [("X-Error-Code", "EntryNotFound"), ("X-Repo-Commit", COMMIT)])
        content = self.files[name]
        common = [("X-Repo-Commit", COMMIT)]
        if not self.is_large(name):
            return request.reply(200, content, common + [("ETag", f'"{git_hash(content)}"')])
        digest = hashlib.sha256(content).hexdigest()
        request.reply(302, b"", common + [("X-Linked-Etag", f'"{digest}"'), ("X-Linked-Size", str(len(content))),
                                          ("Location", f"{self.storage}/{digest}")])

    def answer_storage(self, request):
        assert "Authorization" not in request.headers, "the token left the Hub"
        content = next(c for c in self.files.values() if hashlib.sha256(c).hexdigest() == request.path[1:])
        begin = int((request.headers.get("Range") or "bytes=0-").split("=")[1].split("-")[0])
        if begin:
            part = f"bytes {begin}-{len(content) - 1}/{len(content)}"
            return request.reply(206, content[begin:], [("Content-Range", part)])
        request.reply(200, content)

    def count(self, method, part):
        return sum(m == method and part in p for m, p in self.asked)


def tree(cache):
    """Files with their content, links with their target; without locks and marks of tools."""
    found = {}
    for path in sorted(Path(cache).rglob("*")):
        name = str(path.relative_to(cache))
        if path.is_dir() and not path.is_symlink() or not name.startswith("models--"):
            continue
        if "/refs/" in name or "/blobs/" in name or "/snapshots/" in name:
            found[name] = os.readlink(path) if path.is_symlink() else hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def check(what, holds):
    print(("ok      " if holds else "FAILED  ") + what)
    check.failed += not holds


check.failed = 0


def main(roux, model):
    hub = Hub(model)
    os.environ.update(HF_ENDPOINT=hub.endpoint, HF_TOKEN="hf_secret", HF_HUB_OFFLINE="0", HF_HUB_DISABLE_XET="1")
    from huggingface_hub import scan_cache_dir, snapshot_download

    def fetch(cache, *words, offline=False, wait=True):
        environment = dict(os.environ, HF_HUB_CACHE=str(cache), HF_HUB_OFFLINE="1" if offline else "0")
        command = [roux, "fetch", f"hf://{NAME}", *words]
        process = subprocess.Popen(command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return process if not wait else (process.communicate()[0], process.returncode)

    with tempfile.TemporaryDirectory() as work:
        by_roux, by_python = Path(work, "roux"), Path(work, "python")
        said, status = fetch(by_roux)
        check(f"roux fetches: {said.strip()}", status == 0 and COMMIT in said)
        check("no token in what it says", "hf_secret" not in said)
        hub.asked.clear()
        wanted = [p.name for p in (by_roux / "models--ada--tiny/snapshots" / COMMIT).iterdir()]
        path = snapshot_download(NAME, cache_dir=by_roux, allow_patterns=wanted)
        downloads = [p for m, p in hub.asked if m == "GET" and not p.startswith("/api/")]
        check("huggingface_hub downloads none of it again", downloads == [])
        check("and names the same folder", Path(path) == by_roux / "models--ada--tiny/snapshots" / COMMIT)
        check("scan_cache_dir finds no fault", not scan_cache_dir(by_roux).warnings)

        snapshot_download(NAME, cache_dir=by_python, allow_patterns=wanted)
        check("both write the same", tree(by_roux) == tree(by_python))
        hub.asked.clear()
        said, status = fetch(by_python)
        downloads = [p for m, p in hub.asked if m == "GET" and not p.startswith("/api/")]
        check("roux downloads nothing of what Python has fetched", status == 0 and downloads == [])
        hub.asked.clear()
        said, status = fetch(by_python, offline=True)
        check("roux uses it offline", status == 0 and hub.asked == [])

        os.environ["HF_HUB_OFFLINE"] = "1"
        from transformers import AutoModelForCausalLM
        loaded = AutoModelForCausalLM.from_pretrained(path, local_files_only=True)
        check("Transformers loads what roux fetched", sum(p.numel() for p in loaded.parameters()) > 0)

        shutil.rmtree(by_roux)
        hub.asked.clear()
        hub.held_after = 2 * PIECE
        first = fetch(by_roux, wait=False)
        hub.held.wait()
        second = fetch(by_roux, wait=False)
        line = second.stdout.readline()
        check(f"a second process waits: {line.strip()}", "waiting for it" in line)
        os.kill(first.pid, signal.SIGKILL)
        first.wait()
        hub.held_after = None
        hub.release.set()
        said = second.communicate()[0]
        large = hashlib.sha256(hub.files["model.safetensors"]).hexdigest()
        check("and takes over when the first is killed", second.returncode == 0 and hub.count("GET", large) == 2)
        check("with the same result", tree(by_roux) == tree(by_python))
    return check.failed


if __name__ == "__main__":
    here = Path(__file__).parent
    sys.exit(main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else here / "models" / "llama-grouped"))

#!/usr/bin/env python3
"""Read a DVCLive directory with the real `dvc` command and print JSON.

usage: verify_dvclive.py PROJECT_DIR      (the directory that holds dvc.yaml)
The directory is copied into a fresh git + dvc repository first, so nothing in it changes.
"""

import json, os, shutil, subprocess, sys, tempfile


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    here = os.path.join(os.path.dirname(sys.executable), "dvc")
    dvc = here if os.path.exists(here) else "dvc"
    out, failed = {}, False
    with tempfile.TemporaryDirectory() as t:
        w = os.path.join(t, "w")
        shutil.copytree(sys.argv[1], w, ignore=shutil.ignore_patterns(".git", ".dvc"))
        env = dict(os.environ, DVC_NO_ANALYTICS="true", DVC_SITE_CACHE_DIR=os.path.join(t, "site"))

        def sh(*a):
            return subprocess.run(a, cwd=w, env=env, capture_output=True, text=True)

        sh("git", "init", "-q", ".")
        sh(dvc, "init", "-q")
        sh("git", "-c", "user.name=n", "-c", "user.email=n@example.org", "commit", "-q", "--allow-empty", "-m", "empty")
        for key, cmd in {
            "metrics": ["metrics", "show", "--json"],
            "params": ["params", "diff", "--json"],
            "plots": ["plots", "show", "--json"],
        }.items():
            r = sh(dvc, *cmd)
            try:
                out[key] = json.loads(r.stdout)
                failed |= '"error"' in r.stdout
            except ValueError:
                out[key], failed = {"error": (r.stderr or r.stdout)[-2000:]}, True
        if isinstance(out.get("plots"), dict):
            series = {}
            for name, entries in out["plots"].get("data", {}).items():
                for e in entries:
                    if e.get("type") == "vega":
                        c = e["content"] if isinstance(e["content"], dict) else json.loads(e["content"])
                        series[name] = c.get("data", {}).get("values")
                    else:
                        series[name] = e.get("type")
            out["plots"] = {"series": series, "errors": out["plots"].get("errors", [])}
            failed |= bool(out["plots"]["errors"])
    json.dump(out, sys.stdout, indent=1, sort_keys=True)
    print()
    sys.exit(1 if failed else 0)


main()

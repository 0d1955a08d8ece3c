#!/usr/bin/env python3
"""Read an Aim repository with the aim package and print JSON.

usage: verify_aim.py REPO_DIR      (the directory that holds .aim; best with `aim up` stopped)
The index is rebuilt first (`aim storage reindex`): until it is, runs show no parameters and no metrics.
"""

import json, math, os, subprocess, sys


def num(x):
    return (
        x if not isinstance(x, float) or math.isfinite(x) else ("nan" if math.isnan(x) else "inf" if x > 0 else "-inf")
    )


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    repo = sys.argv[1]
    here = os.path.join(os.path.dirname(sys.executable), "aim")
    subprocess.run(
        [here if os.path.exists(here) else "aim", "storage", "--repo", repo, "reindex"],
        input="y\n",
        text=True,
        capture_output=True,
    )
    import aim
    from aim.sdk.types import QueryReportMode as Q

    r, out = aim.Repo(repo), []
    for h in sorted(r.list_all_runs()):
        run = aim.Run(h, repo=repo, read_only=True)
        o = {
            "hash": h,
            "name": run.name,
            "experiment": run.experiment,
            "description": run.description,
            "tags": run.tags,
            "active": run.active,
            "end_time": run.end_time,
            "hparams": run.get("hparams"),
            "metrics": [],
            "images": [],
            "texts": [],
        }
        for m in run.metrics():
            m.preload()
            try:
                steps, (vals, _epochs, _times) = m.data.items_list()
            except ValueError:
                steps, vals = [], []
            o["metrics"].append(
                {
                    "name": m.name,
                    "context": m.context.to_dict(),
                    "figures": {
                        key: num(value) for key, value in run.meta_run_tree["traces", m.context.idx, m.name].items()
                    },
                    "points": sorted([int(a), num(float(b))] for a, b in zip(steps, vals)),
                }
            )
        for s in r.query_images(f"run.hash == '{h}'", report_mode=Q.DISABLED).iter():
            for x in s.values.sparse_list()[1]:
                o["images"].append({"name": s.name, "size": list(x.to_pil_image().size), "caption": x.caption})
        for s in r.query_texts(f"run.hash == '{h}'", report_mode=Q.DISABLED).iter():
            o["texts"] += [{"name": s.name, "text": x.data} for x in s.values.sparse_list()[1]]
        out.append(o)
    json.dump(out, sys.stdout, indent=1, sort_keys=True, default=str)
    print()
    if not out:
        sys.exit(1)


main()

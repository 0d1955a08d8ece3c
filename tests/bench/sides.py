"""Sides of a benchmark: run in turn, compared with each other and with limits, and kept for --json."""
import itertools
import json
import math
import os
import platform
import shlex
import statistics
import subprocess
import sys
import time
from pathlib import Path

PEERS = Path(__file__).resolve().parent / "peers"
missed = []  # the titles of limits that do not hold
shown = []   # what was printed, as data


def interleave(rounds, metrics, commands, warmup=1):
    """{metric: {name: row}}; the first command is the reference of every ratio. `warmup`: rounds that do not count."""
    line = [sys.executable, str(PEERS / "interleave.py"), "--json", "-n", str(rounds), "--calm", str(rounds),
            "--warmup", str(warmup), "--metric", ",".join(metrics)]
    line += [f"{name}={shlex.join(map(str, command))}" for name, command in commands.items()]
    done = subprocess.run(line, stdout=subprocess.PIPE, text=True, cwd=PEERS)
    if done.returncode:
        raise SystemExit(f"interleave.py: exit status {done.returncode}")
    table = {}
    for row in json.loads(done.stdout)["rows"]:
        table.setdefault(row["metric"], {})[row["name"]] = row
    return table


def relative(rows, names):
    """Those of the rows, with ratios to the first of the names, round by round."""
    reference, found = rows[names[0]]["values"], {}
    for name in names:
        ratios = [value / other for value, other in zip(rows[name]["values"], reference)]
        found[name] = dict(rows[name], ratio_to_first=statistics.median(ratios), ratio_min=min(ratios),
                           ratio_max=max(ratios))
    return found


# Two-sided quantiles of Student's distribution for 95 %, by degrees of freedom; between those listed, the one before.
STUDENT = {1: 12.71, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262, 10: 2.228, 12: 2.179,
           15: 2.131, 20: 2.086, 30: 2.042}


def interval(values, others):
    """The ratio of values to others in pairs: its geometric mean, and where that lies with 95 %."""
    logs = [math.log(value / other) for value, other in zip(values, others)]
    mean, free = statistics.fmean(logs), len(logs) - 1
    if free < 1:
        return {"mean": math.exp(mean)}
    quantile = STUDENT[max(known for known in STUDENT if known <= free)]
    half = quantile * statistics.stdev(logs) / math.sqrt(len(logs))
    return {"mean": math.exp(mean), "low": math.exp(mean - half), "high": math.exp(mean + half)}


def show_interval(title, rows, pairs):
    """Of each pair of rows: how the first is to the second, with its interval."""
    print(f"  {title}, 95 % intervals of {len(next(iter(rows.values()))['values'])} pairs")
    for name, other in pairs:
        found = interval(rows[name]["values"], rows[other]["values"])
        rows[name].setdefault("interval", {})[other] = found
        text = f" ({found['low']:.3f} to {found['high']:.3f})" if "low" in found else ""
        print(f"    {name} is {found['mean']:.3f} of {other}{text}", flush=True)


def tcmalloc():
    """What makes a peer use it. tests/bench/run installs it: without it the strongest peer would be a weaker one."""
    library = "libtcmalloc_minimal.so.4"
    found = subprocess.run(["ldconfig", "-p"], stdout=subprocess.PIPE, text=True).stdout
    if library not in found:
        raise SystemExit(f"{library} is not installed\n  hint: apt-get install libtcmalloc-minimal4")
    return ["env", f"LD_PRELOAD={library}"]


def forms(peers, switches):
    """{"accelerate+compile+tcmalloc": its command}: each peer with every choice of its strong forms. `switches`:
    {"compile": the flags that ask for it}."""
    found = {}
    for peer, command in peers.items():
        for chosen in itertools.product((False, True), repeat=len(switches)):
            on = [name for name, taken in zip(switches, chosen) if taken]
            line = [*command, *(flag for name in on for flag in switches[name])]
            found["+".join([peer, *on])] = line
            found["+".join([peer, *on, "tcmalloc"])] = [*tcmalloc(), *line]
    return found


def fastest(title, metric, commands, kept=2):
    """Those that were the fastest in one run of each; which of them is the strongest peer is measured beside roux."""
    rates = {name: row["median"] for name, row in interleave(1, [metric], commands, warmup=0)[metric].items()}
    ranked = sorted(rates, key=rates.get, reverse=True)
    print(f"\n{title}: one run of each form of the peers, {metric}\n  "
          + "\n  ".join(f"{name:<32} {rates[name]:.4g}" for name in ranked), flush=True)
    return {name: commands[name] for name in ranked[:kept]}


def show(title, rows, limits, at_most):
    """`limits`: what roux divided by the peer must stay under (or reach); "strongest" is the limit of the best peer."""
    print(f"\n{title}")
    peers = {name: row["median"] for name, row in rows.items() if not name.startswith("roux")}
    strongest = (min if at_most else max)(peers, key=peers.get) if "strongest" in limits else None
    width = max(20, *map(len, rows))
    for name, row in rows.items():
        text = f"  {name:<{width}} median {row['median']:<9.4g} min {row['min']:<9.4g} max {row['max']:<9.4g} " \
               f"other {row['other']:>3.0%}"
        if name != "roux":
            ratio, least, most = (1 / row[key] for key in ("ratio_to_first", "ratio_max", "ratio_min"))
            row["roux_of_it"] = {"median": ratio, "min": least, "max": most}
            text += f"  roux is {ratio:.3f} of it ({least:.3f} to {most:.3f})"
            text += ", the strongest peer" if name == strongest else ""
            for key in [name] + ["strongest"] * (name == strongest):
                if key not in limits:
                    continue
                good = ratio <= limits[key] if at_most else ratio >= limits[key]
                text += f", {'at most' if at_most else 'at least'} {limits[key]:.3g} {'holds' if good else 'IS MISSED'}"
                row.setdefault("limits", {})["strongest" if key == "strongest" else "stock"] = {
                    "at_most" if at_most else "at_least": limits[key], "holds": good}
                if not good:
                    missed.append(f"{title}: {name}")
        print(text, flush=True)
    shown.append({"title": title, "strongest": strongest, "sides": rows})


def show_shares(figures, metric, rows):
    """What of the machine's peak each side reaches; `figures` are the peer's, with its rate, GFLOP/s and the peak."""
    for row in rows.values():
        row["of_peak"] = row["median"] * figures["gflops"] / figures[metric] / figures["peak_gflops"]
    print(f"  of {figures['peak_gflops']:.0f} GFLOP/s, at which PyTorch multiplies large matrices here: " + ", ".join(
        f"{name} {row['of_peak']:.0%}" for name, row in rows.items()), flush=True)


def check(title, text, good):
    print(f"  {text} {'holds' if good else 'IS MISSED'}", flush=True)
    shown.append({"title": title, "text": text, "holds": bool(good)})
    if not good:
        missed.append(title)


def last_line(*command):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def text_of(value, indent=0):
    """JSON for reading and for git: what fits in a line of 120 is one."""
    line = json.dumps(value)
    if len(line) + indent <= 120 or not isinstance(value, (dict, list)) or not value:
        return line
    inner, outer = "\n" + " " * (indent + 1), "\n" + " " * indent
    if isinstance(value, list):
        return "[" + inner + ("," + inner).join(text_of(each, indent + 1) for each in value) + outer + "]"
    return "{" + inner + ("," + inner).join(f"{json.dumps(key)}: {text_of(each, indent + 1)}"
                                            for key, each in value.items()) + outer + "}"


def keep(path, a):
    """Writes what was shown so far into a file, with where it was measured: whole, or not at all."""
    def said(*command):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        return done.stdout.strip() if done.returncode == 0 else ""

    git = ["git", "-C", str(PEERS)]
    cpu = [line.partition(":")[2].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
    record = {
        "commit": (said(*git, "rev-parse", "HEAD") or "unknown")
                  + ", changed" * bool(said(*git, "status", "--porcelain", "--untracked-files=no")),
        "roux": said(a.roux, "--version"),
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "machine": {"cpu": (cpu or [platform.processor()])[0], "cores": os.cpu_count(),
                    "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1)},
        "rounds": a.rounds, "tiny": a.tiny, "missed": missed, "shown": shown}
    partial = path.with_suffix(".partial")
    partial.write_text(text_of(record) + "\n")
    os.replace(partial, path)

"""What the machine itself takes for the state of peers/checkpoint.py: machine.py MEGABYTES [cpu|cuda] -> one JSON line.

stall_ms  one copy of that many bytes in memory, by torch's threads, into memory that was used before; with cuda, from
          the GPU into page-locked memory
synced_s  `dd conv=fsync` of that many bytes; committed_s and stall_sync_ms are the same
load_s    the same bytes read from the page cache; read_s is the same
"""
import json
import statistics
import subprocess
import sys
import tempfile
import time

import torch

megabytes = int(float(sys.argv[1]))
device = (sys.argv[2:] or ["cpu"])[0]
torch.set_num_threads(2)


def seconds(work, times=1):
    taken = []
    for _ in range(times):
        begin = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken)


state = torch.arange(megabytes * 125_000, dtype=torch.int64, device=device)
copy = torch.empty_like(state, device="cpu", pin_memory=device == "cuda")
copy.copy_(state)
copy_s = seconds(lambda: copy.copy_(state), 5)  # blocks on a GPU, too
with tempfile.TemporaryDirectory() as folder:
    dd = ["dd", "if=/dev/zero", f"of={folder}/file", "bs=1000000", f"count={megabytes}", "conv=fsync", "status=none"]
    synced_s = seconds(lambda: subprocess.run(dd, check=True))
    buffer = memoryview(copy.numpy()).cast("B")

    def read():
        with open(f"{folder}/file", "rb", buffering=0) as file:
            done = 0
            while count := file.readinto(buffer[done:done + (1 << 24)]):
                done += count

    load_s = seconds(read, 3)
print(json.dumps({"stall_ms": copy_s * 1e3, "stall_sync_ms": synced_s * 1e3, "synced_s": synced_s, "committed_s": synced_s,
                  "load_s": load_s, "read_s": load_s}))

"""Does a profile show what the GPU did, and under which block of the model; and is the GPU itself watched?"""
import json

from lab import RECIPES

STEPS = 2  # recorded ones


def profile(lab, record):
    """The trace speaks for itself: each kernel names the operation that started it, which lies in the range of a block."""
    activities = "[cpu]" if lab.pretend else "[cpu, cuda]"
    sort_by = "cpu_time_total" if lab.pretend else "cuda_time_total"
    trained = lab.run(
        RECIPES / "smoke/gpt.yaml", f"training.max_steps={20 if lab.pretend else 1000}", "training.max_epochs=null",
        "checkpoint.save_at_end=false", "system_metrics.interval=0.05",
        f"profiler={{activities: {activities}, schedule: {{wait: 3, warmup: 1, active: {STEPS}}}, record_shapes: true, "
        f"profile_memory: true, with_flops: true, with_modules: true, sort_by: {sort_by}}}")
    trace, = (trained.folder / "profile").glob("*.pt.trace.json")
    events = [event for event in json.loads(trace.read_text())["traceEvents"] if event["ph"] == "X"]
    averages = json.loads(trace.with_name(trace.name.replace(".pt.trace.json", ".key_averages.json")).read_text())
    launched = [event for event in events if event.get("cat") == ("cpu_op" if lab.pretend else "kernel")]
    record.expect("the trace holds kernels", launched)
    check_blocks(record, events, launched, averages["blocks"])
    shown = lab.call(lab.roux_words("profile", "show", trained.folder.name, "--output-dir", trained.folder.parent))
    record.expect("roux profile show prints the table", "Self CPU time total" in shown)
    if lab.pretend:
        return
    check_sums(record, events, averages)
    record.expect("roux profile show prints the time of kernels", "Self CUDA time total" in shown)
    ranges = {event["name"] for event in events if event.get("cat") == "gpu_user_annotation"}
    record.expect("the trace shows each block among the kernels", {block["name"] for block in averages["blocks"]} <= ranges)
    for name in ("utilization_percentage", "memory_usage_megabytes", "power_usage_watts"):
        readings = list(trained.series(f"gpu_0_{name}").values())
        record.expect(f"the GPU is watched: {name}", readings)
        record.figure(f"{name}, largest of {len(readings)}", max(readings, default=None))


def check_blocks(record, events, launched, blocks):
    """Each block starts kernels in its forward pass: of an operation within its range, on the same thread."""
    ranges = [event for event in events if event.get("cat") == "user_annotation"]
    operations = {event["args"]["External id"]: event for event in events if event.get("cat") == "cpu_op"}

    def holds(outer, inner):
        return outer["tid"] == inner["tid"] and outer["ts"] <= inner["ts"] and \
            inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"] + 1e-3

    starters = [operations[event["args"]["External id"]] for event in launched
                if event["args"].get("External id") in operations]
    record.expect("most kernels name the operation that started them", len(starters) > 0.9 * len(launched))
    record.expect("the model has blocks", blocks)
    for block in blocks:
        own = [one for one in ranges if one["name"] == block["name"]]
        record.expect(f"{block['name']}: one range for each recorded forward pass", len(own) == block["count"] >= STEPS)
        record.expect(f"{block['name']}: kernels in its forward pass",
                      all(any(holds(one, operation) for operation in starters) for one in own))


def check_sums(record, events, averages):
    in_trace = sum(event["dur"] for event in events if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset"))
    kernels = sum(row["self_cuda_time_total"] for row in averages["key_averages"] if row["is_kernel"])
    record.check("the summary's time of kernels is off the trace by, relative", abs(kernels - in_trace) / in_trace,
                 at_most=0.01)
    in_blocks = sum(block["forward_cuda_us"] + block["backward_cuda_us"] for block in averages["blocks"])
    record.figure("part of the kernels' time that blocks have", in_blocks / in_trace)
    record.expect("each block has kernels in both passes",
                  all(block["forward_cuda_us"] > 0 < block["backward_cuda_us"] for block in averages["blocks"]))
    record.expect("allocations of the GPU are recorded",
                  any(row["cuda_memory_usage"] for row in averages["key_averages"]))

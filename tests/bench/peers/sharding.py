"""GPT training with parameters, gradients or optimizer state divided among processes of one thread each, over gloo.

--peer fsdp2     fully_shard of each block and of the model; with --keep its parameters stay gathered from the forward to
                 the backward pass (ZeRO stage 2)
--peer fsdp1     FullyShardedDataParallel wrapped per block: FULL_SHARD, with --keep SHARD_GRAD_OP
--peer ddp       DistributedDataParallel, with --zero1 ZeroRedundancyOptimizer

--dtype bf16 is MixedPrecision: parameters and activations in bfloat16. Gradients travel in bfloat16, as roux's do (which
adds them up in float32), with --float32-gradients in float32. DDP has autocast alone.
--link as in ddp.py. Each process asserts that it holds a part of the parameters, or of the optimizer's state, alone.
"""
import argparse
import json
import os
import subprocess
import sys
import time
from contextlib import nullcontext

from common import GPT_CONFIGS, emit, peak_rss_mb, summary
from ddp import free_port


def wrapped(a, model):
    import torch
    from torch.distributed import fsdp
    bf16 = a.dtype == "bf16"
    types = dict(param_dtype=torch.bfloat16, reduce_dtype=torch.float32 if a.float32_gradients else torch.bfloat16)
    if a.peer == "ddp":
        return torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    if a.peer == "fsdp2":
        from torch.distributed.device_mesh import init_device_mesh
        mixed = fsdp.MixedPrecisionPolicy(**(types if bf16 else {}))
        options = dict(mesh=init_device_mesh("cpu", (a.world,)), mp_policy=mixed, reshard_after_forward=not a.keep)
        for block in model.blocks:
            fsdp.fully_shard(block, **options)
        return fsdp.fully_shard(model, **options)
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy
    mixed = fsdp.MixedPrecision(**types) if bf16 else None
    strategy = fsdp.ShardingStrategy.SHARD_GRAD_OP if a.keep else fsdp.ShardingStrategy.FULL_SHARD
    return fsdp.FullyShardedDataParallel(
        model, auto_wrap_policy=ModuleWrapPolicy({type(model.blocks[0])}), mixed_precision=mixed,
        sharding_strategy=strategy, use_orig_params=True, device_id=torch.device("cpu"))


def local_bytes(tensors):
    return sum((t.to_local() if hasattr(t, "to_local") else t).nbytes for t in tensors)


def state_bytes(optimizer):
    import torch
    states = (optimizer.optim if hasattr(optimizer, "optim") else optimizer).state.values()
    return local_bytes(v for state in states for v in state.values() if torch.is_tensor(v) and v.dim() > 0)


def worker(a):
    import torch
    import torch.distributed as dist
    from common import make_gpt, set_threads
    set_threads(a.threads)
    dist.init_process_group("gloo")
    cfg = {k: getattr(a, k) or v for k, v in GPT_CONFIGS[a.config].items()}
    model = make_gpt(cfg)
    whole = sum(p.nbytes for p in model.parameters())
    if a.compile:
        for block in model.blocks:
            block.compile()
    net = wrapped(a, model)
    how = {"fused": dict(fused=True), "foreach": dict(foreach=True), "stock": {}}[a.adamw]
    if a.zero1:
        from torch.distributed.optim import ZeroRedundancyOptimizer
        opt = ZeroRedundancyOptimizer(net.parameters(), torch.optim.AdamW, lr=3e-4, parameters_as_bucket_view=True, **how)
    else:
        opt = torch.optim.AdamW(net.parameters(), lr=3e-4, **how)
    rank = int(os.environ["RANK"])
    torch.manual_seed(rank)
    ids = torch.randint(cfg["vocab"], (cfg["batch"], cfg["seq_len"] + 1))
    x, y = ids[:, :-1].contiguous(), ids[:, 1:].contiguous()
    autocast = a.dtype == "bf16" and a.peer == "ddp"
    times, losses = [], []
    for _ in range(a.warmup + a.steps):
        begin = time.perf_counter()
        with torch.autocast("cpu", dtype=torch.bfloat16) if autocast else nullcontext():
            loss = net(x, y)
        loss.backward()
        opt.step()
        opt.zero_grad()
        losses.append(loss.item())
        times.append(time.perf_counter() - begin)
    # Shards are padded, and the state of one process of ZeroRedundancyOptimizer is its share of whole parameters.
    held, state = local_bytes(net.parameters()), state_bytes(opt)
    if a.peer != "ddp":
        if a.peer == "fsdp1":  # the flat parameters' own shards
            held = sum(h.flat_param._local_shard.nbytes for m in net.modules()
                       if (h := getattr(m, "_handle", None)) is not None)
        assert held < 1.1 * whole / a.world, f"{held} bytes of {whole} are held by each of {a.world} processes"
    if a.peer != "ddp" or a.zero1:
        assert state < 1.5 * 2 * whole / a.world, f"{state} bytes of states, of parameters with {whole}"
    figures = [None] * a.world
    dist.all_gather_object(figures, {"peak_rss_mb": peak_rss_mb(), "state_mb": state / 1e6, "held_mb": held / 1e6})
    s = summary(times[a.warmup:])
    if rank == 0:
        print(json.dumps({
            "step_s": s["median"], "step_min_s": s["min"], "steps_per_s": 1 / s["median"], "first_loss": losses[0],
            "last_loss": losses[-1], "whole_mb": whole / 1e6,
            **{key: [round(f[key], 1) for f in figures] for key in ("held_mb", "state_mb")},
            **{f"rank_{i}_rss_mb": f["peak_rss_mb"] for i, f in enumerate(figures)}, "peak_rss_mb": max(f["peak_rss_mb"] for f in figures)}),
            flush=True)
    dist.barrier()
    dist.destroy_process_group()
    sys.stdout.flush()
    os._exit(0)  # at times a thread of PyTorch that is still there ends the process with SIGABRT


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--peer", default="fsdp2", choices=["fsdp2", "fsdp1", "ddp"])
    ap.add_argument("--keep", action="store_true", help="parameters stay gathered until their backward pass")
    ap.add_argument("--zero1", action="store_true", help="ddp: the optimizer's state is divided")
    ap.add_argument("--config", default="small", choices=list(GPT_CONFIGS))
    for field in GPT_CONFIGS["small"]:
        ap.add_argument("--" + field.replace("_", "-"), type=int)
    ap.add_argument("--dtype", default="fp32", choices=["fp32", "bf16"])
    ap.add_argument("--float32-gradients", action="store_true", help="of bf16: what travels in the backward pass")
    ap.add_argument("--adamw", default="stock", choices=["stock", "fused", "foreach"])
    ap.add_argument("--compile", action="store_true", help="each block, before it is wrapped")
    ap.add_argument("--world", type=int, default=2)
    ap.add_argument("--threads", type=int, default=1)
    ap.add_argument("--steps", type=int, default=6)
    ap.add_argument("--warmup", type=int, default=2)
    ap.add_argument("--link", metavar="RATE:DELAY", help="e.g. 1gbit:1ms")
    ap.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    a = ap.parse_args()
    if a.worker:
        return worker(a)
    from link import Link
    cmd = [sys.executable, os.path.abspath(__file__), "--worker", *sys.argv[1:]]
    with Link(a.link, a.world) as link:
        env = dict(os.environ, OMP_NUM_THREADS=str(a.threads), WORLD_SIZE=str(a.world), LOCAL_WORLD_SIZE="1",
                   MASTER_ADDR=link.address(0), MASTER_PORT=str(free_port()), GLOO_SOCKET_IFNAME=link.interface)
        procs = [subprocess.Popen(link.enter(r) + cmd, env=dict(env, RANK=str(r), LOCAL_RANK=str(r)),
                                  stdout=subprocess.PIPE if r == 0 else subprocess.DEVNULL, text=True)
                 for r in range(a.world)]
        text = procs[0].communicate()[0]
        if any([p.wait() for p in procs]):
            raise SystemExit("a worker failed")
    emit(workload="sharding", peer=a.peer, keep=a.keep, zero1=a.zero1, config=a.config, dtype=a.dtype,
         float32_gradients=a.float32_gradients, adamw=a.adamw, compiled=a.compile, world=a.world, link=a.link or "loopback",
         **json.loads(text.strip().splitlines()[-1]))


if __name__ == "__main__":
    main()

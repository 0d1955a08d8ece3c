"""How fast roux generates: roux_generate.py ROUX FOLDER PROMPTS.jsonl NEW [FLAG...] -> one JSON line."""
import json
import os
import re
import subprocess
import sys

roux, folder, prompts, new, *flags = sys.argv[1:]
line = [roux, "generate", folder, "--prompts", prompts, "--max-new-tokens", new, "--set", "generation.eos_token_id=0",
        "--device", "cpu", "--format", "jsonl", *flags]
done = subprocess.run(line, env=dict(os.environ, OMP_NUM_THREADS="2"), capture_output=True, text=True)
if done.returncode:
    raise SystemExit(f"{' '.join(line)}: exit status {done.returncode}\n{done.stderr}")
said = done.stderr.splitlines()[-1]
rates = [float(rate.replace(",", "")) for rate in re.findall(r"\(([\d.,]+) tokens/s\)", said)]
texts = [json.loads(text) for text in done.stdout.splitlines()]
if any(text["finish_reason"] != "length" for text in texts):
    raise SystemExit(f"a text ended early: {done.stdout}")
found = {"workload": "generate", "prefill_tokens_per_s": rates[0]}
if int(new) > 1:
    found["tokens_per_s"] = rates[1]
print(json.dumps(found))

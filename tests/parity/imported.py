"""Imported command lines and files train as the tool that they were written for: the losses of five steps.

  imported.py model                    writes imported/model: a small Llama, with the tokenizer of the examples
  imported.py record trl|llama_factory|axolotl
                                       into imported/expected.json: the tool's own losses of what is not there; needs
                                       trl 1.16, llamafactory 0.9.5 with trl 0.24, or the sources of Axolotl (067b021c)
                                       with addict and colorama, beside transformers 5.24
  imported.py check ROUX               imports each with `roux config import`, trains, and compares to 1e-4

tests/cli/import/losses.cli checks, too. Each step sees all records, so that no order plays a part.
"""
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
FOLDER = HERE / "imported"
EXPECTED = FOLDER / "expected.json"
TOLERANCE = 1e-4
TRAINER = ("--model_name_or_path model --per_device_train_batch_size 4 --max_steps 5 --logging_steps 1 "
           "--learning_rate 1e-2 --lr_scheduler_type constant --bf16 False --use_cpu True --gradient_checkpointing False "
           "--report_to none --save_strategy no --output_dir out")
# LLaMA-Factory's own words, without those that are its defaults.
FACTORY = {"model_name_or_path": "model", "do_train": True, "finetuning_type": "full", "dataset_dir": ".",
           "template": "qwen", "per_device_train_batch_size": 4, "gradient_accumulation_steps": 1, "max_steps": 5,
           "logging_steps": 1, "learning_rate": 1.0e-2, "lr_scheduler_type": "constant", "use_cpu": True,
           "disable_gradient_checkpointing": True, "save_strategy": "no", "report_to": "none", "output_dir": "out"}
# Axolotl's: ids and masks are its own, and Transformers' Trainer trains on them, as it does under Axolotl.
AXOLOTL = {"base_model": "model", "sequence_len": 256, "micro_batch_size": 4, "gradient_accumulation_steps": 1,
           "max_steps": 5, "logging_steps": 1, "learning_rate": 1.0e-2, "lr_scheduler": "constant",
           "optimizer": "adamw_torch", "weight_decay": 0.0, "bf16": False, "output_dir": "out"}
DATASET_INFO = {
    "chats": {"file_name": "chats.jsonl", "formatting": "sharegpt", "columns": {"messages": "messages"},
              "tags": {"role_tag": "role", "content_tag": "content", "user_tag": "user", "assistant_tag": "assistant",
                       "system_tag": "system"}},
    "tasks": {"file_name": "tasks.jsonl"},
    "pairs": {"file_name": "choices.jsonl", "formatting": "sharegpt", "ranking": True,
              "columns": {"messages": "conversations", "chosen": "chosen", "rejected": "rejected"}}}
CASES = {
    "trl/messages": f"trl sft {TRAINER} --dataset_name chats.jsonl",
    "trl/completions": f"trl sft {TRAINER} --dataset_name answers.jsonl",
    "trl/texts": f"trl sft {TRAINER} --dataset_name texts.jsonl",
    "trl/dpo": f"trl dpo {TRAINER} --dataset_name pairs.jsonl --beta 0.2",
    "trl/dpo_sft": f"trl dpo {TRAINER} --dataset_name pairs.jsonl --loss_type sigmoid sft --loss_weights 1.0 0.5",
    "trl/reward": f"trl reward {TRAINER.replace(' model ', ' rewards ')} --dataset_name pairs.jsonl "
                  "--center_rewards_coefficient 0.1",
    "trl/reward_short": f"trl reward {TRAINER.replace(' model ', ' rewards ')} --dataset_name pairs.jsonl --max_length 40",
    "trl/kto": f"trl kto {TRAINER} --dataset_name labels.jsonl --desirable_weight 1.5",
    "llama_factory/chats": {**FACTORY, "stage": "sft", "dataset": "chats"},
    "llama_factory/tasks": {**FACTORY, "stage": "sft", "dataset": "tasks", "train_on_prompt": True},
    "llama_factory/last": {**FACTORY, "stage": "sft", "dataset": "chats", "mask_history": True},
    "llama_factory/dpo": {**FACTORY, "stage": "dpo", "dataset": "pairs", "pref_beta": 0.2},
    "axolotl/chat_template": {**AXOLOTL, "datasets": [{"path": "chats.jsonl", "type": "chat_template"}]},
    "axolotl/eos": {**AXOLOTL, "datasets": [{"path": "chats.jsonl", "type": "chat_template", "train_on_eos": "all"}]},
    "axolotl/weights": {**AXOLOTL, "datasets": [{"path": "weights.jsonl", "type": "chat_template",
                                                 "message_field_training": "train", "train_on_eos": "turn"}]},
    "axolotl/sharegpt": {**AXOLOTL, "chat_template": "chatml", "datasets": [
        {"path": "turns.jsonl", "type": "chat_template", "field_messages": "conversations",
         "message_property_mappings": {"role": "from", "content": "value"}}]},
    "axolotl/alpaca": {**AXOLOTL, "datasets": [{"path": "tasks.jsonl", "type": "alpaca"}]},
    "axolotl/alpaca_whole": {**AXOLOTL, "train_on_inputs": True,
                             "datasets": [{"path": "tasks.jsonl", "type": "alpaca"}]},
    "axolotl/completion": {**AXOLOTL, "datasets": [{"path": "lines.jsonl", "type": "completion", "field": "line"}]},
}
CHATS = [["How many legs has a spider?", "Eight."], ["Hi there", "Hello!", "Bye", "See you soon."],
         ["Name a bird", "A wren"], ["One, two", "Three, four, five"]]


def messages(turns):
    return [{"role": "user" if i % 2 == 0 else "assistant", "content": text} for i, text in enumerate(turns)]


def write_lines(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def write_data(folder):
    bad = "No idea."
    write_lines(folder / "chats.jsonl", [{"messages": messages(turns)} for turns in CHATS])
    write_lines(folder / "answers.jsonl", [{"prompt": messages(turns[:-1]), "completion": messages(["", turns[-1]])[1:]}
                                           for turns in CHATS])
    write_lines(folder / "texts.jsonl", [{"prompt": turns[-2] + ":", "completion": " " + turns[-1]} for turns in CHATS])
    write_lines(folder / "pairs.jsonl", [
        {"prompt": messages(turns[:-1]), "chosen": messages(["", turns[-1]])[1:], "rejected": messages(["", bad])[1:]}
        for turns in CHATS])
    write_lines(folder / "labels.jsonl", [
        {"prompt": messages(turns[:-1]), "completion": messages(["", turns[-1]])[1:], "label": i % 2 == 0}
        for i, turns in enumerate(CHATS)])
    write_lines(folder / "tasks.jsonl", [{"instruction": turns[-2], "input": "", "output": turns[-1]} for turns in CHATS])
    write_lines(folder / "choices.jsonl", [
        {"conversations": [{"from": "human" if i % 2 == 0 else "gpt", "value": text} for i, text in enumerate(turns[:-1])],
         "chosen": {"from": "gpt", "value": turns[-1]}, "rejected": {"from": "gpt", "value": bad}} for turns in CHATS])
    write_lines(folder / "lines.jsonl", [{"line": " ".join(turns)} for turns in CHATS])
    write_lines(folder / "turns.jsonl", [
        {"conversations": [{"from": "human" if i % 2 == 0 else "gpt", "value": text} for i, text in enumerate(turns)]}
        for turns in CHATS])
    write_lines(folder / "weights.jsonl", [
        {"messages": [{**message, "train": i > 1} if i % 2 else message for i, message in enumerate(messages(turns))]}
        for turns in CHATS if len(turns) > 2] * 4)
    (folder / "dataset_info.json").write_text(json.dumps(DATASET_INFO))
    shutil.copytree(FOLDER / "model", folder / "model")
    write_reward_model(folder / "model", folder / "rewards")


def write_reward_model(model, folder):
    """The model with a head of rewards, so that it does not begin at random."""
    shutil.copytree(model, folder)
    config = json.loads((folder / "config.json").read_text())
    config.update(architectures=["LlamaForSequenceClassification"], id2label={"0": "LABEL_0"}, label2id={"LABEL_0": 0})
    (folder / "config.json").write_text(json.dumps(config))
    data = (folder / "model.safetensors").read_bytes()
    head = [(i * 7 % 11 - 5) / 10 for i in range(config["hidden_size"])]
    length = int.from_bytes(data[:8], "little")
    names, tensors = json.loads(data[8:8 + length]), data[8 + length:] + struct.pack(f"<{len(head)}f", *head)
    names["score.weight"] = {"dtype": "F32", "shape": [1, len(head)],
                             "data_offsets": [len(data) - 8 - length, len(tensors)]}
    text = json.dumps(names).encode()
    (folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + tensors)


def make_model():
    import torch
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM
    folder = FOLDER / "model"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.copy(HERE.parent.parent / "recipes/examples/data/tokenizer.json", folder)
    (folder / "tokenizer_config.json").write_text(json.dumps(
        {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|im_end|>", "pad_token": "<|im_start|>"}) + "\n")
    (folder / "chat_template.jinja").write_text(
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}\n")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    torch.manual_seed(1)
    config = LlamaConfig(vocab_size=len(tokenizer), hidden_size=16, intermediate_size=24, num_hidden_layers=2,
                         num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=256,
                         tie_word_embeddings=True, bos_token_id=None, eos_token_id=tokenizer.eos_token_id,
                         pad_token_id=tokenizer.pad_token_id, initializer_range=0.3)
    LlamaForCausalLM(config).save_pretrained(folder)


def losses_of_trl(line):
    from datasets import load_dataset
    from transformers import HfArgumentParser
    from trl import (DPOConfig, DPOTrainer, KTOConfig, KTOTrainer, RewardConfig, RewardTrainer, SFTConfig, SFTTrainer)
    _, kind, *words = line.split()
    at = {name: words.index(name) for name in ("--model_name_or_path", "--dataset_name")}
    model, data = (words[i + 1] for i in at.values())
    rest = [word for i, word in enumerate(words) if not any(i in (k, k + 1) for k in at.values())]
    config, trainer = {"sft": (SFTConfig, SFTTrainer), "dpo": (DPOConfig, DPOTrainer),
                       "kto": (KTOConfig, KTOTrainer), "reward": (RewardConfig, RewardTrainer)}[kind]
    (args,) = HfArgumentParser(config).parse_args_into_dataclasses(rest)
    made = trainer(model=model, args=args, train_dataset=load_dataset("json", data_files=data, split="train"))
    made.train()
    return [row["loss"] for row in made.state.log_history if "loss" in row]


def losses_of_factory(words):
    from llamafactory.train.tuner import run_exp
    run_exp(dict(words))
    log = [json.loads(line) for line in open("out/trainer_log.jsonl")]
    return [row["loss"] for row in log if "loss" in row]


def losses_of_axolotl(words):
    import torch
    from addict import Dict
    from axolotl.prompt_strategies import load
    from axolotl.prompt_tokenizers import AlpacaPromptTokenizingStrategy
    from axolotl.prompters import AlpacaPrompter
    from datasets import load_dataset
    from transformers import AutoModelForCausalLM, AutoTokenizer, DataCollatorForSeq2Seq, Trainer, TrainingArguments
    (data,) = words["datasets"]
    tokenizer = AutoTokenizer.from_pretrained("model")
    rows = load_dataset("json", data_files=data["path"], split="train")
    if data["type"] == "alpaca":
        strategy = AlpacaPromptTokenizingStrategy(AlpacaPrompter(), tokenizer, words.get("train_on_inputs", False),
                                                  words["sequence_len"])
    else:
        strategy = load(data["type"], tokenizer, Dict(words), Dict(data))
    rows = rows.map(strategy.tokenize_prompt, batched=strategy.supports_batched, remove_columns=rows.column_names)
    args = TrainingArguments(output_dir="out", per_device_train_batch_size=words["micro_batch_size"],
                             max_steps=words["max_steps"], logging_steps=1, learning_rate=words["learning_rate"],
                             lr_scheduler_type="constant", use_cpu=True, save_strategy="no", report_to=[])
    trainer = Trainer(AutoModelForCausalLM.from_pretrained("model", dtype=torch.float32), args, train_dataset=rows,
                      data_collator=DataCollatorForSeq2Seq(tokenizer, label_pad_token_id=-100))
    trainer.train()
    return [row["loss"] for row in trainer.state.log_history if "loss" in row]


def in_new_folder(work):
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        write_data(pathlib.Path(folder))
        os.chdir(folder)
        try:
            return work()
        finally:
            os.chdir(before)


def record(tool):
    os.environ["DISABLE_VERSION_CHECK"] = "1"
    known = json.loads(EXPECTED.read_text()) if EXPECTED.exists() else {}
    for name, case in CASES.items():
        if name.startswith(tool + "/") and name not in known:
            of = {"trl": losses_of_trl, "llama_factory": losses_of_factory, "axolotl": losses_of_axolotl}[tool]
            known[name] = in_new_folder(lambda of=of, case=case: of(case))
            print(name, known[name])
    EXPECTED.write_text(json.dumps(known, indent=1) + "\n")


def losses_of_roux(roux, case):
    if isinstance(case, str):
        file = pathlib.Path("line.sh")
        file.write_text(case + "\n")
    else:
        file = pathlib.Path("train.yaml")
        file.write_text("".join(f"{key}: {json.dumps(value)}\n" for key, value in case.items()))

    def run(*words):
        done = subprocess.run([roux, *words], capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{' '.join(map(str, words))}\n{done.stderr}")
        return done.stdout

    run("config", "import", file, "--output", "recipe.yaml")
    run("run", "recipe.yaml", "--quiet", "--output-dir", "runs")
    points = json.loads(run("runs", "show", "last", "--metric", "loss", "--format", "json", "--output-dir", "runs"))
    return [loss for _, loss in points]


def check(roux):
    bad = 0
    for name, expected in json.loads(EXPECTED.read_text()).items():
        found = in_new_folder(lambda name=name: losses_of_roux(roux, CASES[name]))
        apart = max(abs(a - b) for a, b in zip(expected, found))
        good = len(found) == len(expected) == 5 and apart <= TOLERANCE
        bad += not good
        print(f"{name}: {'ok' if good else f'{found}, and {expected} were recorded'}")
    missing = sorted(set(CASES) - set(json.loads(EXPECTED.read_text())))
    if missing:
        raise SystemExit(f"not recorded: {', '.join(missing)}")
    return bad


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["model"]:
            make_model()
        case ["record", ("trl" | "llama_factory" | "axolotl") as tool]:
            record(tool)
        case ["check", roux]:
            sys.exit(1 if check(pathlib.Path(roux).resolve()) else 0)
        case _:
            sys.exit(__doc__)

"""JSONL to ids in memory: every record {"text": ...} of a file, encoded, with its end token; nothing else.

The clock runs from opening the file until the ids of all records are there; reading the tokenizer counts, imports do not.

--peer      tokenizers: json.loads and encode_batch. tokenizers-fast: encode_batch_fast, which knows no offsets.
            datasets: load_dataset and map(batched=True, num_proc=THREADS), into an empty cache
--threads N threads of encode_batch, or processes of map
"""
import argparse
import json
import os
import tempfile
import time


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("file")
    ap.add_argument("tokenizer", help="a tokenizer.json")
    ap.add_argument("--peer", default="tokenizers", choices=["tokenizers", "tokenizers-fast", "datasets"])
    ap.add_argument("--threads", type=int, default=1)
    ap.add_argument("--chunk", type=int, default=1000)
    a = ap.parse_args()
    of_processes = a.peer == "datasets"
    os.environ["RAYON_NUM_THREADS"] = "1" if of_processes else str(a.threads)
    os.environ["TOKENIZERS_PARALLELISM"] = "false" if of_processes or a.threads == 1 else "true"
    import numpy as np
    from tokenizers import Tokenizer
    if of_processes:
        import datasets
        datasets.disable_progress_bars()
    from common import emit

    def ids_of(tokenizer, texts, fast):
        end = tokenizer.token_to_id("<|endoftext|>")
        encode = tokenizer.encode_batch_fast if fast else tokenizer.encode_batch
        return [[*one.ids, end] for one in encode(texts)]

    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        if of_processes:
            tokenizer = Tokenizer.from_file(a.tokenizer)
            records = datasets.load_dataset("json", data_files=a.file, split="train", cache_dir=folder)
            encoded = records.map(lambda batch: {"input_ids": ids_of(tokenizer, batch["text"], False)}, batched=True,
                                  num_proc=a.threads, remove_columns=records.column_names)
            count = len(encoded)
        else:
            tokenizer = Tokenizer.from_file(a.tokenizer)
            with open(a.file, "rb") as file:
                texts = [json.loads(line)["text"] for line in file]
            encoded = []
            for i in range(0, len(texts), a.chunk):
                for ids in ids_of(tokenizer, texts[i:i + a.chunk], a.peer == "tokenizers-fast"):
                    encoded.append(np.asarray(ids, dtype=np.int32))
            count = len(encoded)
        seconds = time.perf_counter() - begin
    emit(workload="encode", peer=a.peer, threads=a.threads, records=count,
         mb_per_s=os.path.getsize(a.file) / 1e6 / seconds)


if __name__ == "__main__":
    main()

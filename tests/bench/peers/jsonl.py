"""JSONL to packed batches: records {"text": ...} of a file, encoded, packed into rows, eight rows a batch, one epoch.

The clock runs from opening the file to the last batch; reading the tokenizer counts, imports do not.

--workers N   worker processes of the DataLoader, each of which encodes the records of a batch (0: this process)
--threads N   threads of encode_batch in each process
--chunk N     records that one encode_batch gets
"""
import argparse
import json
import os
import time

import numpy as np


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("file")
    ap.add_argument("tokenizer", help="a tokenizer.json")
    ap.add_argument("--workers", type=int, default=0)
    ap.add_argument("--threads", type=int, default=1)
    ap.add_argument("--chunk", type=int, default=1000)
    ap.add_argument("--context", type=int, default=2048)
    ap.add_argument("--batch", type=int, default=8)
    a = ap.parse_args()
    os.environ["RAYON_NUM_THREADS"] = str(a.threads)
    os.environ["TOKENIZERS_PARALLELISM"] = "true" if a.threads > 1 else "false"
    import torch
    from tokenizers import Tokenizer

    from common import emit, set_threads
    set_threads(1)
    begin = time.perf_counter()
    tokenizer = Tokenizer.from_file(a.tokenizer)

    class Records(torch.utils.data.Dataset):
        """Lines by their offsets, as `datasets` and hand-written sets do."""

        def __init__(self, path):
            with open(path, "rb") as file:
                self.lines = file.read().split(b"\n")[:-1]

        def __len__(self):
            return len(self.lines)

        def __getitem__(self, i):
            return json.loads(self.lines[i])["text"]

    end = tokenizer.token_to_id("<|endoftext|>")

    def encode(texts):
        return [np.asarray([*encoded.ids, end], dtype=np.int64) for encoded in tokenizer.encode_batch_fast(texts)]

    loader = torch.utils.data.DataLoader(Records(a.file), batch_size=a.chunk, num_workers=a.workers, collate_fn=encode)
    rows, records, used = [], [], 0

    def finished():
        """One row of ids, positions that restart and documents' numbers."""
        row = np.full((3, a.context), 0, dtype=np.int64)
        at = 0
        for number, ids in enumerate(records):
            row[0, at:at + len(ids)] = ids
            row[1, at:at + len(ids)] = np.arange(len(ids))
            row[2, at:at + len(ids)] = number + 1
            at += len(ids)
        return torch.from_numpy(row)

    count = 0
    for encoded in loader:
        for ids in encoded:
            ids = ids[:a.context]
            if used + len(ids) > a.context:
                rows.append(finished())
                records, used = [], 0
                if len(rows) == a.batch:
                    torch.stack(rows)
                    count += a.batch
                    rows = []
            records.append(ids)
            used += len(ids)
    rows.append(finished())
    torch.stack(rows)
    count += len(rows)
    seconds = time.perf_counter() - begin
    emit(workload="jsonl", peer="torch", workers=a.workers, threads=a.threads, rows=count, rows_per_s=count / seconds)


if __name__ == "__main__":
    main()

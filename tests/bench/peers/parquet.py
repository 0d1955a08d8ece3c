"""Parquet to texts: every value of the column `text`, in batches of 1,000; nothing else.

The clock runs from opening the file until the last text is there; imports do not count.

--peer      datasets: load_dataset into an empty cache, then its batches. streamed: load_dataset(streaming=True)
"""
import argparse
import tempfile
import time


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("file")
    ap.add_argument("--peer", default="datasets", choices=["datasets", "streamed"])
    a = ap.parse_args()
    import datasets
    from common import emit
    datasets.disable_progress_bars()
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        rows = datasets.load_dataset("parquet", data_files=a.file, split="train", cache_dir=folder, columns=["text"],
                                     streaming=a.peer == "streamed")
        count = size = 0
        for batch in rows.iter(batch_size=1000):
            count += len(batch["text"])
            size += sum(map(len, batch["text"]))
        seconds = time.perf_counter() - begin
    emit(workload="parquet", peer=a.peer, rows=count, mb_per_s=size / 1e6 / seconds)


if __name__ == "__main__":
    main()

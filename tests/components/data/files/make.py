"""make.py [FOLDER]: writes the Parquet and Arrow files beside it, with pyarrow 26.0.1. The same bytes each time, but for
the encrypted ones, whose keys are random.

What a row is expected to be is in a .jsonl file of the same name, from Python's own values.
"""
import base64
import datetime
import decimal
import json
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as encryption

FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else __file__)
FOLDER = FOLDER if FOLDER.is_dir() else FOLDER.parent


def record(value):
    """What JSON has for a value of Python's, without the fields of mappings that are null."""
    if isinstance(value, dict):
        return {key: record(item) for key, item in value.items() if item is not None}
    if isinstance(value, (list, tuple)):
        return [record(item) for item in value]
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return base64.b64encode(value).decode()
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, datetime.datetime) and value.tzinfo:
        return value.astimezone(datetime.timezone.utc).isoformat()
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, decimal.Decimal) or isinstance(value, int) and value > 2**63 - 1:
        return str(value)
    return value


def expect(name, rows):
    (FOLDER / name).write_text("".join(json.dumps(record(row), ensure_ascii=False) + "\n" for row in rows))


def write_ipc(name, batches, stream=False, **options):
    options = pa.ipc.IpcWriteOptions(**options)
    new = pa.ipc.new_stream if stream else pa.ipc.new_file
    with new(str(FOLDER / name), batches[0].schema, options=options) as writer:
        for batch in batches:
            writer.write_batch(batch)


def conversations():
    call = {"id": "c1", "function": {"name": "add", "arguments": '{"a": 1}'}}
    schema = pa.schema([
        ("messages", pa.list_(pa.struct([
            ("role", pa.string()), ("content", pa.string()), ("weight", pa.int8()),
            ("tool_calls", pa.list_(pa.struct([
                ("id", pa.string()),
                ("function", pa.struct([("name", pa.string()), ("arguments", pa.string())]))])))]))),
        ("source", pa.dictionary(pa.int32(), pa.string())), ("tools", pa.string())])
    rows = [
        {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}], "source": "web"},
        {"messages": [{"role": "user", "content": "1+1?"}, {"role": "assistant", "tool_calls": [call]},
                      {"role": "tool", "content": "2"}, {"role": "assistant", "content": "2", "weight": 1}],
         "source": "web", "tools": "[]"},
        {"messages": [], "source": None}, {"messages": None, "source": "chat"}]
    table = pa.Table.from_pylist(rows, schema=schema)
    pq.write_table(table, FOLDER / "chat.parquet", row_group_size=3, compression="zstd")
    write_ipc("chat.arrow", table.to_batches(max_chunksize=2), compression="zstd")
    expect("chat.jsonl", table.to_pylist())


def types():
    at = datetime.datetime(1969, 12, 31, 23, 59, 59, 250000)
    columns = {
        "bool": (pa.bool_(), [True, None, False]),
        "int8": (pa.int8(), [-128, None, 127]),
        "uint16": (pa.uint16(), [65535, None, 0]),
        "int64": (pa.int64(), [-2**63, None, 2**63 - 1]),
        "uint64": (pa.uint64(), [2**64 - 1, None, 2**63 - 1]),
        "float32": (pa.float32(), [0.1, None, -2.5]),
        "float64": (pa.float64(), [0.1, None, 1e300]),
        "text": (pa.string(), ["Grüße \U0001f600", None, ""]),
        "large_text": (pa.large_string(), ["a\nb\t\"", None, "\u0000"]),
        "bytes": (pa.binary(), [b"text", None, b"\xff\x00"]),
        "fixed_bytes": (pa.binary(3), [b"abc", None, b"\x80\x81\x82"]),
        "decimal": (pa.decimal128(10, 2), [decimal.Decimal("-1.50"), None, decimal.Decimal("12345678.90")]),
        "wide_decimal": (pa.decimal256(60, 0), [decimal.Decimal(10)**59, None, decimal.Decimal(0)]),
        "date": (pa.date32(), [datetime.date(1, 1, 1), None, datetime.date(9999, 12, 31)]),
        "time": (pa.time32("ms"), [datetime.time(23, 59, 59, 999000), None, datetime.time()]),
        "small_time": (pa.time64("us"), [datetime.time(1, 2, 3, 4), None, datetime.time(1, 2, 3)]),
        "at_s": (pa.timestamp("s"), [at.replace(microsecond=0), None, datetime.datetime(2024, 2, 29, 12, 0)]),
        "at_ms": (pa.timestamp("ms"), [at, None, datetime.datetime(2024, 2, 29, 12, 0)]),
        "at_us": (pa.timestamp("us", "Europe/Berlin"),
                  [at.replace(tzinfo=datetime.timezone.utc), None,
                   datetime.datetime(2024, 7, 1, 12, 0, tzinfo=datetime.timezone.utc)]),
        "list": (pa.list_(pa.int32()), [[1, None, 3], None, []]),
        "large_list": (pa.large_list(pa.string()), [["a"], None, [None]]),
        "fixed_list": (pa.list_(pa.int32(), 2), [[1, 2], None, [3, None]]),
        "map": (pa.map_(pa.string(), pa.int32()), [[("a", 1), ("b", None)], None, []]),
        "nested": (pa.list_(pa.struct([("a", pa.list_(pa.struct([("b", pa.int8())])))])),
                   [[{"a": [{"b": 1}, {"b": None}, None]}, None, {"a": None}], None, []]),
        "dictionary": (pa.dictionary(pa.int8(), pa.string()), ["x", None, "x"]),
        "nothing": (pa.null(), [None, None, None]),
    }
    table = pa.table({name: pa.array(values, kind) for name, (kind, values) in columns.items()})
    pq.write_table(table, FOLDER / "types.parquet")
    expect("types.jsonl", table.to_pylist())
    only_arrow = {
        "text_view": (pa.string_view(), ["short", None, "longer than twelve bytes"]),
        "bytes_view": (pa.binary_view(), [b"\xff", None, b""]),
        "list_view": (pa.list_view(pa.int8()), [[1, 2], None, []]),
        "date64": (pa.date64(), [datetime.date(1969, 12, 31), None, datetime.date(2024, 2, 29)]),
        "duration": (pa.duration("ms"), [datetime.timedelta(seconds=-1, milliseconds=500), None, datetime.timedelta(1)]),
    }
    for name, (kind, values) in only_arrow.items():
        table = table.append_column(name, pa.array(values, kind))
    table = table.append_column("float16", pa.array([0.5, None, -65504.0], pa.float16()))
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array(["run", None]))
    table = table.append_column("runs", runs)
    kinds, values = pa.array([0, 1, 0], pa.int8()), [pa.array([7, None], pa.int32()), pa.array(["seven"])]
    table = table.append_column("either", pa.UnionArray.from_dense(kinds, pa.array([0, 0, 1], pa.int32()), values))
    batches = table.combine_chunks().to_batches()
    write_ipc("types.arrow", batches)
    write_ipc("types_stream.arrow", batches, stream=True, compression="lz4")
    expect("types_arrow.jsonl", table.to_pylist())
    nanos = pa.table({"at": pa.array([1, -1, 1000], pa.timestamp("ns"))})
    pq.write_table(nanos, FOLDER / "nanos.parquet")


def texts():
    rows = [None if i % 7 == 5 else f"text {i}" for i in range(40)]
    table = pa.table({"id": pa.array(range(40), pa.int32()), "text": pa.array(rows, pa.string())})
    for codec in ("none", "snappy", "gzip", "brotli", "lz4", "zstd"):
        pq.write_table(table, FOLDER / f"texts_{codec}.parquet", row_group_size=16, compression=codec)
    batches = table.to_batches(max_chunksize=16)
    write_ipc("texts.arrow", batches)
    write_ipc("texts_stream.arrow", batches, stream=True)
    # A dictionary that is another one for each batch, as only a stream may have.
    parts = [pa.table({"text": part.column("text").dictionary_encode()}).to_batches()[0] for part in batches]
    write_ipc("texts_dictionary.arrow", parts, stream=True)
    pa.feather.write_feather(table, str(FOLDER / "texts_v1.feather"), version=1)
    # What `save_to_disk` of the `datasets` library writes, without what only it reads.
    saved = FOLDER / "saved"
    saved.mkdir(exist_ok=True)
    names = ["data-00000-of-00002.arrow", "data-00001-of-00002.arrow"]
    for name, part in zip(names, (batches[:2], batches[2:])):
        write_ipc("saved/" + name, part, stream=True)
    state = {"_data_files": [{"filename": name} for name in names], "_split": "train"}
    (saved / "state.json").write_text(json.dumps(state) + "\n")
    (saved / "dataset_info.json").write_text(json.dumps({"splits": {"train": {"name": "train"}}}) + "\n")


def bad():
    pq.write_table(pa.table({"text": ["a" * (4 << 20)]}), FOLDER / "large.parquet", compression="zstd")
    # Runs of a dictionary's entry: the footer says little of what they unpack to.
    pq.write_table(pa.table({"text": ["b" * 4096] * 4096}), FOLDER / "runs.parquet", compression="zstd")
    nulls = pa.ListArray.from_arrays(pa.array([0, 2_000_000], pa.int32()), pa.nulls(2_000_000))
    write_ipc("many_values.arrow", [pa.record_batch([nulls], ["list"])])
    pq.write_table(pa.table([pa.array([1]), pa.array([2])], ["a", "a"]), FOLDER / "twice.parquet")
    broken = pa.StringArray.from_buffers(2, pa.py_buffer(b"\0\0\0\0\1\0\0\0\2\0\0\0"), pa.py_buffer(b"a\xff"))
    pq.write_table(pa.table({"text": broken}), FOLDER / "not_utf8.parquet")

    class Kms(encryption.KmsClient):
        def wrap_key(self, key_bytes, master_key_identifier):
            return base64.b64encode(key_bytes)

        def unwrap_key(self, wrapped_key, master_key_identifier):
            return base64.b64decode(wrapped_key)

    factory = encryption.CryptoFactory(lambda _: Kms())
    table = pa.table({"text": ["secret"]})
    for name, plain in (("encrypted", False), ("encrypted_columns", True)):
        configuration = encryption.EncryptionConfiguration(
            footer_key="k", column_keys={"k": ["text"]}, plaintext_footer=plain)
        properties = factory.file_encryption_properties(encryption.KmsConnectionConfig(), configuration)
        with pq.ParquetWriter(FOLDER / f"{name}.parquet", table.schema, encryption_properties=properties) as writer:
            writer.write_table(table)


conversations()
types()
texts()
bad()

#!/usr/bin/env python3
"""Read a TensorBoard logdir with TensorBoard's own reader and print JSON.

usage: verify_tensorboard.py LOGDIR [--strict]
--strict: exit 1 if any event file holds a damaged or truncated record.
Needs: tensorboard (see requirements.txt).  The framing check uses the standard library only.
"""

import base64, json, math, os, struct, sys

_T = []
for _i in range(256):
    _c = _i
    for _ in range(8):
        _c = (_c >> 1) ^ 0x82F63B78 if _c & 1 else _c >> 1
    _T.append(_c)


def masked_crc32c(data):
    c = 0xFFFFFFFF
    for b in data:
        c = _T[(c ^ b) & 255] ^ (c >> 8)
    c ^= 0xFFFFFFFF
    return (((c >> 15) | (c << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def framing(path):
    d = open(path, "rb").read()
    o, n = 0, 0
    while o < len(d):
        if len(d) - o < 12:
            return {"records": n, "problem": "truncated header", "offset": o}
        (length,) = struct.unpack_from("<Q", d, o)
        if struct.unpack_from("<I", d, o + 8)[0] != masked_crc32c(d[o : o + 8]):
            return {"records": n, "problem": "length crc", "offset": o}
        if len(d) - o < 16 + length:
            return {"records": n, "problem": "truncated record", "offset": o}
        body = d[o + 12 : o + 12 + length]
        if struct.unpack_from("<I", d, o + 12 + length)[0] != masked_crc32c(body):
            return {"records": n, "problem": "data crc", "offset": o}
        o += 16 + length
        n += 1
    return {"records": n, "problem": None}


def num(x):
    return x if math.isfinite(x) else ("nan" if math.isnan(x) else "inf" if x > 0 else "-inf")


def run(path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugins.hparams import plugin_data_pb2
    from tensorboard.util import tensor_util
    from google.protobuf.json_format import MessageToDict

    ea = EventAccumulator(path, size_guidance={k: 0 for k in ("scalars", "images", "histograms", "tensors", "audio")})
    ea.Reload()
    tags = ea.Tags()
    out = {"files": {}, "scalars": {}, "images": {}, "histograms": {}, "text": {}, "tensors": {}, "hparams": {}}
    for f in sorted(os.listdir(path)):
        if "tfevents" in f:
            out["files"][f] = framing(os.path.join(path, f))
    for t in tags["scalars"]:
        out["scalars"][t] = [[e.step, num(e.value), e.wall_time] for e in ea.Scalars(t)]
    for t in tags["images"]:
        out["images"][t] = [[e.step, e.width, e.height, len(e.encoded_image_string)] for e in ea.Images(t)]
    for t in tags["histograms"]:
        out["histograms"][t] = [
            {
                "step": e.step,
                "min": e.histogram_value.min,
                "max": e.histogram_value.max,
                "num": e.histogram_value.num,
                "limits": list(e.histogram_value.bucket_limit),
                "counts": list(e.histogram_value.bucket),
            }
            for e in ea.Histograms(t)
        ]
    for t in tags["tensors"]:
        md = ea.SummaryMetadata(t)
        plugin = md.plugin_data.plugin_name
        events = ea.Tensors(t)
        if plugin == "text":
            out["text"][t] = [
                [e.step, [s.decode("utf-8", "replace") for s in e.tensor_proto.string_val]] for e in events
            ]
        elif plugin == "hparams":
            out["hparams"][t] = MessageToDict(plugin_data_pb2.HParamsPluginData.FromString(md.plugin_data.content))
        elif plugin == "scalars":
            out["scalars"][t] = [
                [e.step, num(float(tensor_util.make_ndarray(e.tensor_proto))), e.wall_time] for e in events
            ]
        elif plugin == "images":
            out["images"][t] = [
                [e.step]
                + [s.decode() for s in e.tensor_proto.string_val[:2]]
                + [len(s) for s in e.tensor_proto.string_val[2:]]
                for e in events
            ]
        else:
            out["tensors"][t] = {"plugin": plugin, "steps": [e.step for e in events]}
    return out


def main():
    args = [a for a in sys.argv[1:] if not a.startswith("--")]
    if len(args) != 1:
        sys.exit(__doc__)
    root, res = args[0], {}
    for d, _, files in sorted(os.walk(root)):
        if any("tfevents" in f for f in files):
            res[os.path.relpath(d, root)] = run(d)
    json.dump(res, sys.stdout, indent=1, sort_keys=True)
    print()
    bad = [f for r in res.values() for f, s in r["files"].items() if s["problem"]]
    if not res or ("--strict" in sys.argv and bad):
        sys.exit(1)


main()

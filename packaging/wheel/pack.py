"""pack.py PREFIX LAUNCHER VERSION TORCH PYARROW WHEEL: writes the wheel. The same files give the same bytes.

PREFIX becomes site-packages/roux, LAUNCHER the command `roux`, TORCH the only requirement; the extra
`parquet` requires PYARROW.
"""
import base64
import hashlib
import os
import stat
import sys
import zipfile
from pathlib import Path

TAG = "py3-none-manylinux_2_36_x86_64"
METADATA = """\
Metadata-Version: 2.4
Name: roux
Version: {version}
Summary: Run machine-learning experiments from recipes
License-Expression: Apache-2.0
License-File: LICENSE
License-File: NOTICE
License-File: NOTICE-third-party
Requires-Python: >=3.10
Requires-Dist: torch=={torch}
Provides-Extra: parquet
Requires-Dist: pyarrow=={pyarrow}; extra == "parquet"
Description-Content-Type: text/markdown

roux runs machine-learning experiments from recipes: one program checks, plans and trains them, with the LibTorch of
the installed torch. `roux examples copy`, then `roux run recipes/quickstart.yaml`.
"""
WHEEL = f"Wheel-Version: 1.0\nGenerator: roux\nRoot-Is-Purelib: false\nTag: {TAG}\n"


def main():
    prefix, launcher, version, torch, pyarrow, output = sys.argv[1:]
    prefix = Path(prefix)
    info = f"roux-{version}.dist-info"
    files = {f"roux/{path.relative_to(prefix)}": path for path in sorted(prefix.rglob("*")) if path.is_file()}
    files[f"roux-{version}.data/scripts/roux"] = Path(launcher)
    for name in ("LICENSE", "NOTICE", "NOTICE-third-party"):
        files[f"{info}/licenses/{name}"] = prefix / "share/doc/roux" / name
    texts = {f"{info}/METADATA": METADATA.format(version=version, torch=torch, pyarrow=pyarrow), f"{info}/WHEEL": WHEEL}
    record, partial = [], output + ".partial"
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        def add(name, content, executable=False):
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = (stat.S_IFREG | (0o755 if executable else 0o644)) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(content)}")

        for name, path in files.items():
            add(name, path.read_bytes(), "/bin/" in name or "/scripts/" in name)
        for name, text in texts.items():
            add(name, text.encode())
        add(f"{info}/RECORD", ("\n".join(record) + f"\n{info}/RECORD,,\n").encode())
    os.replace(partial, output)


main()

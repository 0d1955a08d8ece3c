#!/usr/bin/env bash
# What a program that was installed from a wheel says of the torch beside it, tried on folders laid out as pip does.
set -euo pipefail
build=$2
work=$(realpath "$(mktemp -d)")
trap 'rm -rf "$work"' EXIT
deps=$(sed -n 's/^ROUX_DEPS:PATH=//p' "$build/CMakeCache.txt")
site=$work/site-packages
mkdir -p "$site/roux/"{bin,lib,share/roux}
cp "$build/bin/roux" "$site/roux/bin/"
for library in "$build"/lib/libroux_{base,engine}.so; do ln -s "$library" "$site/roux/lib/"; done
: >"$site/roux/lib/libroux_cuda.so"  # no library at all: it must not be loaded
sed -n 's/^torch==\([^ ]*\) .*/\1/p' "$1/runner/cmake/libtorch.txt" >"$site/roux/share/roux/torch-version"
needed=$(cat "$site/roux/share/roux/torch-version")
ln -s "$build/pretended/lib/libcuda.so.1" "$site/roux/lib/"  # a driver
cd "$work"
cat >tiny.yaml <<'END'
device: cpu
model: {type: mlp, hidden: [4]}
data: {train: {type: synthetic}}
loss: mse
optimizer: {type: sgd, lr: 0.1}
training: {max_steps: 2, micro_batch_size: 2}
END
roux() { env -i HOME="$work" PATH=/usr/bin:/bin LD_LIBRARY_PATH="$site/roux/lib" "$site/roux/bin/roux" "$@"; }

# expect STATUS TEXT COMMAND...
expect() {
  local wanted=$1 text=$2 status=0
  shift 2
  roux "$@" >said 2>&1 || status=$?
  [ $status = "$wanted" ] && grep -qF -- "$text" said && return
  cat said
  echo "tests/cli/beside_torch.sh: error: roux $*: status $status, and it should be $wanted with: $text"
  exit 1
}

# torch VERSION: its folder, as far as roux looks at it before it loads LibTorch.
torch() {
  rm -rf "$site/torch"
  mkdir -p "$site/torch"
  printf "from typing import Optional\n\n__all__ = ['__version__', 'debug']\n__version__ = %s\ndebug = False\n" "$1" \
    >"$site/torch/version.py"
}

expect 1 "error: this roux needs torch $needed, and $site/torch has none" run tiny.yaml
expect 1 "none in $site/torch" env
expect 0 "tiny.yaml: ok" validate tiny.yaml
torch "'2.12.0+cu130'"
expect 1 "error: this roux needs torch $needed, and $site/torch is 2.12.0+cu130" run tiny.yaml
expect 1 "  hint: \`pip install torch==$needed\` in this environment" run tiny.yaml
torch "'${needed}1'"
expect 1 "error: this roux needs torch $needed, and $site/torch is ${needed}1" run tiny.yaml
for damaged in "" "'" "None"; do
  torch "$damaged"
  expect 1 "error: this roux needs torch $needed, and $site/torch has none" run tiny.yaml
done
torch "\"$needed+cpu\""
expect 2 "torch $needed+cpu beside this roux is built without CUDA" run tiny.yaml --set device=cuda
expect 0 "$needed+cpu in $site/torch" env
expect 0 "" run tiny.yaml
rm -rf "$site/torch"
ln -s "$deps/torch" "$site/torch"
expect 0 "" run tiny.yaml --new
echo "trains beside the torch that it needs, and beside no other"

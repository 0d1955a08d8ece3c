#!/usr/bin/env bash
# The rules of tidy.cpp, each on a small tree that breaks it. SOURCE_TREE BUILD
set -euo pipefail
tidy=$2/bin/tidy
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# A tree in which everything is right, with one file for each thing that a case may break.
fresh() {
  rm -rf "$work/tree"
  mkdir -p "$work"/tree/{runner/{core/platform,store/database,train/step},components/{loss,tensor},tests/runner/core}
  cd "$work/tree"
  touch CMakeLists.txt
  echo '#include "runner/core/node.h"' >runner/core/node.cpp
  echo '#pragma once' >runner/core/node.h
  echo '#pragma once' >runner/core/platform/files.h
  printf '#include "runner/core/node.h"\n#include "runner/core/platform/files.h"\n' >runner/core/platform/files.cpp
  printf '#pragma once\n#include "runner/core/node.h"\n' >runner/store/database/sqlite.h
  echo '#include "runner/store/database/sqlite.h"' >runner/store/run.cpp
  echo '#pragma once' >components/loss/loss.h
  echo '#include "components/loss/loss.h"' >components/loss/mse.cpp
  mkdir docs && printf '```phrases\nwho on earth\nin vain\n```\n' >docs/wording.md
}

# expect WHAT TEXT: tidy names TEXT, once the case's change is made; or nothing where TEXT is empty.
expect() {
  local output status=0
  output=$("$tidy" --root "$work/tree" 2>&1) || status=$?
  if [ -z "$2" ]; then
    [ "$status" = 0 ] && return
  else
    [ "$status" = 1 ] && grep -qF -- "$2" <<<"$output" && return
  fi
  printf 'tests/tidy/tidy_test.sh: error: %s: expected "%s", got:\n%s\n' "$1" "$2" "$output"
  failed=1
}

fresh
expect 'a tree that is right' ''

fresh
echo '#include "runner/store/database/sqlite.h"' >runner/core/node.cpp
expect 'a layer includes one above it' \
  'runner/core/node.cpp:1: error: core must not know store, yet it includes "runner/store/database/sqlite.h"'

fresh
printf '#include "runner/core/node.h"\n#include "runner/core/platform/files.h"\n' >runner/core/node.cpp
expect 'a folder includes a sub-folder that is above it' \
  'runner/core/node.cpp:2: error: runner/core must not know runner/core/platform, yet it includes'

fresh
echo '#include "runner/core/platform/files.h"' >>runner/core/node.h
echo '#include "runner/core/node.h"' >>runner/core/platform/files.h
expect 'two folders include each other' 'closes a circle of folders: '

fresh
mkdir -p tests/support/disk
echo '#include "tests/support/disk/b.h"' >tests/support/a.h
echo '#include "tests/support/a.h"' >tests/support/disk/b.h
expect 'two folders of the tests include each other' 'closes a circle of folders: '

fresh
echo '#include <torch/nn.h>' >>runner/core/node.cpp
expect 'LibTorch in a layer without it' 'core is without LibTorch, yet it includes <torch/nn.h>'

fresh
echo '#include <torch/torch.h>' >>components/loss/mse.cpp
expect 'all of LibTorch' '<torch/torch.h> takes 23 s to compile'

fresh
echo '#include <ATen/Tensor.h>' >>components/loss/loss.h
expect 'LibTorch in an interface' 'an interface that others include brings no LibTorch'

fresh
echo '#pragma once' >components/loss/mse.h
printf '#include "components/loss/mse.h"\n#include "components/loss/loss.h"\n' >components/loss/mse.cpp
echo '#include "components/loss/mse.h"' >runner/train/step/step.cpp
expect 'the runner knows a component' 'train knows kinds, never a component: "components/loss/mse.h"'

fresh
echo '#pragma once' >runner/core/alone.h
expect 'a header that no file includes' 'runner/core/alone.h:1: error: no file includes this header'

fresh
mkdir -p include/roux && echo '#include "components/loss/loss.h"' >include/roux/loss.h
expect 'a public header is for others' ''
echo '#include "components/loss/gone.h"' >include/roux/loss.h
expect 'a public header names a header that is gone' '"components/loss/gone.h" does not exist'
echo '#include "include/roux/loss.h"' >components/loss/mse.cpp
expect 'the tree uses a public header' 'components must not know include, yet it includes "include/roux/loss.h"'

fresh
echo 'int x;' >tests/loose.cpp
expect 'a test in no folder' 'tests/loose.cpp:1: error: belongs to no target'

fresh
mkdir -p runner/attic && echo 'int x;' >runner/attic/x.cpp
expect 'a folder that is no layer' 'belongs to no target: runner/attic is no layer'

fresh
echo '#include "tests/runner/core/x.h"' >>runner/core/node.cpp
echo '#pragma once' >tests/runner/core/x.h
expect 'a file of the tests' 'includes a file of the tests'

fresh
printf '// %0121d\n' 0 >>runner/core/node.cpp
expect 'a long line' '124 columns, and 120 is the limit'

fresh
printf 'auto x = R"(%0121d)";\n' 0 >>runner/core/node.cpp
expect 'a long line within a raw string' ''

fresh
for i in $(seq 41); do echo >"tests/runner/core/$i.txt"; done
expect 'too many files in a folder' 'tests/runner/core:1: error: 41 files, and 40 is the limit'

fresh
seq 4001 >tests/runner/core/long.txt
expect 'too many lines in a folder' 'tests/runner/core:1: error: 4001 lines, and 4000 is the limit'

fresh
echo '// Not In  Vain.' >>runner/core/node.cpp
expect 'a phrase that the wording refuses' \
  'runner/core/node.cpp:2: error: says "in vain": docs/wording.md has better words'

fresh
printf '/// Asks who\n/// on earth.\nauto x = "in "\n  "vain";\n' >>runner/core/node.cpp
expect 'a phrase across lines of a comment' 'runner/core/node.cpp:2: error: says "who on earth"'
expect 'a phrase across texts that are joined' 'runner/core/node.cpp:4: error: says "in vain"'

fresh
echo 'int in_vain, vainly; // in vainer' >>runner/core/node.cpp
mkdir -p tests/golden/vectors && echo '{"message": "in vain"}' >tests/golden/vectors/x.json
expect 'words that only begin like a phrase, and data from elsewhere' ''

fresh
rows='concerns(. tidy)
concerns(runner/core fast)
concerns(runner/store fast)
concerns(components torch)
concerns(docs tidy)
concerns(tests/CMakeLists.txt tidy)'
echo "$rows" >tests/CMakeLists.txt
expect 'each folder has the tests that it concerns' ''
mkdir runner/train/save && echo '#include "runner/core/node.h"' >runner/train/save/x.cpp
expect 'a folder concerns no tests' 'runner/train/save:1: error: no row of tests/CMakeLists.txt has the tests'
rm -r runner/train/save
echo 'concerns(runner/attic fast)' >>tests/CMakeLists.txt
expect 'a row of a folder that is gone' \
  'tests/CMakeLists.txt:7: error: runner/attic concerns tests, and is not there'

exit $failed

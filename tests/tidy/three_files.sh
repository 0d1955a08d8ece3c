#!/usr/bin/env bash
# Adding a scheduler touches three files by hand: done in a copy of the tree, which then lists, explains and tests it.
# Removing them again leaves nothing of it.
# The copy compiles through the shared compiler cache, so that only what is new costs time.
set -euo pipefail
source_tree=$1 build=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
copy=$work/copy
mkdir "$copy"
cd "$source_tree"
git ls-files --cached --others --exclude-standard | while IFS= read -r file; do
  [ ! -f "$file" ] || printf '%s\n' "$file"
done | tar -cf - -T - | tar -xf - -C "$copy"
cd "$copy"

mkdir -p schemas/lr_scheduler components/lr_scheduler tests/components/lr_scheduler
cat >schemas/lr_scheduler/staircase.json <<'EOF'
{
  "title": "Halves in steps",
  "description": "Halves the factor every `every_steps`.",
  "x-source": "factor = 0.5 ^ floor(step / every_steps)",
  "properties": {
    "every_steps": { "type": "integer", "minimum": 1, "x-unit": "optimizer steps", "description": "Width of a stair." }
  },
  "examples": [ { "type": "staircase", "every_steps": 10 } ]
}
EOF
cat >components/lr_scheduler/staircase.cpp <<'EOF'
#include <cmath>

#include "components/lr_scheduler/lr_scheduler.h"
#include "generated/lr_scheduler/staircase.h"

namespace components::lr_scheduler::staircase {
namespace {

class Staircase final : public Scheduler {
 public:
  explicit Staircase(const Config& config) : config_(config) {}
  double factor(std::int64_t step) const override {
    return std::pow(0.5, static_cast<double>(step / config_.every_steps));
  }

 private:
  Config config_;
};

}  // namespace

std::shared_ptr<Scheduler> make(const Config& config, const Inputs&) { return std::make_shared<Staircase>(config); }

}  // namespace components::lr_scheduler::staircase
EOF
cat >tests/components/lr_scheduler/staircase_test.cpp <<'EOF'
#include <catch2/catch.hpp>

#include "components/lr_scheduler/lr_scheduler.h"
#include "tests/support/blocks.h"

TEST_CASE("staircase halves at each stair", "[lr_scheduler][staircase]") {
  const auto node = tests::block("lr_scheduler", "{type: staircase, every_steps: 10}");
  const auto scheduler = components::lr_scheduler::build(node, {});
  CHECK(scheduler->factor(9) == 1.0);
  CHECK(scheduler->factor(10) == 0.5);
  CHECK(scheduler->factor(25) == 0.25);
}
EOF

deps=$(sed -n 's/^ROUX_DEPS:PATH=//p' "$build/CMakeCache.txt")
if [ "$deps" = "$source_tree/.deps" ]; then
  ln -s "$(readlink -f "$deps")" .deps
  deps=$copy/.deps
fi
build_type=$(sed -n 's/^CMAKE_BUILD_TYPE:[A-Z]*=//p' "$build/CMakeCache.txt")
{
  cmake --preset dev -DROUX_DEPS="$deps" -DCMAKE_BUILD_TYPE="$build_type" &&
    ninja -C build/dev roux tests_torch
} >"$work/build.log" 2>&1 || { tail -n 30 "$work/build.log"; exit 1; }
export ROUX_DEPS=$deps
unset CI ROUX_PRESET ROUX_SKIP_BUILD  # the copy is built as above

build/dev/bin/roux list lr_scheduler | grep staircase
build/dev/bin/roux explain lr_scheduler/staircase | grep -A1 every_steps
build/dev/bin/tests_torch '[staircase]'

./roux list lr_scheduler >/dev/null
./roux list lr_scheduler >/dev/null 2>"$work/said"
[ ! -s "$work/said" ] || { cat "$work/said"; echo "error: with nothing to do, ./roux says something"; exit 1; }

# Removed again: first only the .cpp file, which a build names, then the schema too, and nothing of it is left.
rm components/lr_scheduler/staircase.cpp tests/components/lr_scheduler/staircase_test.cpp
if ./roux list lr_scheduler >"$work/said" 2>&1; then echo "error: a schema without a .cpp file is linked"; exit 1; fi
grep -F 'hint: no .cpp file defines components::lr_scheduler::staircase::make(...)' "$work/said" ||
  { cat "$work/said"; exit 1; }
rm schemas/lr_scheduler/staircase.json
./roux list lr_scheduler >"$work/said" 2>&1 || { cat "$work/said"; exit 1; }
if grep staircase "$work/said"; then echo "error: a removed component is listed"; exit 1; fi
header=build/dev/generated/lr_scheduler/staircase.h
[ ! -e $header ] || { echo "error: $header is left of a removed component"; exit 1; }
./roux env >"$work/said" 2>&1 || { cat "$work/said"; echo "error: the engine is not loaded any more"; exit 1; }

# Sourced by .ci/run: the stages. do_NAME runs one; it sets up and builds what it needs.

# Run each time. The labels are those of `tests`; each can be named by itself.
always=(set-up build tests processor format clang-tidy quickstart)
labels=(torch golden cli numerics tidy)

# Run when an input has changed since they passed. A path is a file, or a folder with all in it; * matches within a
# name. What only shows through something that is not listed is found by the next run of everything.
conditional=(fast estimates device guides ranks kills readback examples fuzz threads cuda wheel)
inputs=(
  # What tests_fast links and reads: everything without LibTorch.
  [fast]='runner/artifact runner/chart runner/cli runner/core runner/hub runner/launch runner/net runner/pretrained
          runner/query runner/recipe runner/registry runner/resolve runner/review runner/store runner/sweep
          runner/terminal runner/transfer runner/words trackers components/sampler components/pruner
          components/tokenizer components/quantization
          components/template components/model/types schemas recipes tests/runner tests/components/sampler
          tests/components/pruner tests/components/template tests/components/tokenizer tests/trackers
          tests/golden tests/sim tests/support tests/fixtures tests/programs
          runner/arrow tests/components/data/files'
  # What takes memory in a step, and what has a fused kernel.
  [estimates]='runner/train runner/engine components/model components/block components/part components/layer
               components/loss components/optimizer components/ops components/adapter components/kernels
               components/tensor tests/estimates'
  # What computes on a device, and what moves there and back.
  [device]='runner/train runner/engine runner/distributed runner/checkpoint runner/cuda/cuda.h runner/core/platform
            components/model components/block components/part components/layer components/loss components/optimizer
            components/ops components/adapter components/kernels components/tensor components/generation
            components/weight_averaging tests/support tests/programs tests/cli/run/pretended_gpu.cli'
  # What the guides tell a reader to type, and what an installation carries. The components that they train have other
  # tests.
  [guides]='docs/guides docs/writing-a-component.md README.md runner/cli runner/recipe runner/registry runner/resolve
            runner/review runner/sweep runner/query include packaging roux schemas recipes/quickstart.yaml
            tests/cli/guides.sh tests/cli/install.sh tests/cli/driver.cpp'
  # What processes train together; tests/programs include the last three. Kinds of components that only the first of
  # them asks, or that are the same in each, are left out.
  [ranks]='runner/launch runner/distributed runner/train runner/checkpoint runner/artifact runner/store
           components/model components/block components/part components/layer components/loss components/metric
           components/optimizer components/ops components/adapter components/kernels components/tensor components/data
           components/weight_averaging runner/core/platform tests/ranks tests/cli/sharding tests/cli/processes
           tests/support tests/programs
           runner/engine runner/core/node.h trackers/plugin_abi.h runner/cuda/cuda.h runner/core/clock.h'
  # What writes files and starts processes, whatever it is that they train.
  [kills]='runner/launch runner/distributed runner/train runner/checkpoint runner/artifact runner/store runner/sweep
           components/data runner/core/platform runner/cli/proof trackers
           tests/ranks tests/support tests/programs runner/engine runner/core/node.h runner/cuda/cuda.h
           runner/core/clock.h'
  [readback]='trackers runner/store runner/transfer runner/artifact runner/checkpoint runner/sweep runner/terminal
              runner/train/observe schemas/tracker schemas/recipe.schema.json tests/verify tests/fixtures
              tests/programs/write_run.cpp'
  # What the examples include, and what makes code of their schemas.
  [examples]='components/*/*.h components/sampler/math/*.h trackers/*.h trackers/io/*.h runner/cli/*.h
              runner/registry/*.h schemas/gen schemas/kinds.json docs/writing-a-component.md
              runner/core/platform/files.h runner/core/text/text.h roux tests/verify/lib tests/cli/driver.cpp
              tests/tidy/worked_examples.sh tests/support/*.h tests/support/torch/*.h tests/trackers/followed_run.h'
  # What fuzz_recipe links, the generated tables too, and what it mutates.
  [fuzz]='runner/core runner/recipe runner/registry runner/resolve runner/pretrained runner/artifact runner/hub
          runner/net runner/words components/quantization tests/parity/adapters/*/adapter_config.json
          components/tokenizer tests/components/tokenizer/files components/template
          tests/components/template/recorded components/model/types schemas tests/fuzz recipes
          tests/golden/bad tests/cli tests/runner/artifact/foreign/files tests/parity/models/*/*.json'
  # What tests_threads links, without the generated tables, which start no thread.
  [threads]='runner/core runner/recipe runner/registry runner/resolve runner/store runner/artifact runner/launch
             runner/net runner/hub
             runner/sweep trackers components/sampler components/pruner tests/runner/store tests/runner/sweep
             tests/trackers tests/support tests/programs/bad_plugin.cpp'
  # What only this preset compiles, the headers that it includes, and what the bundle carries. The rest of the program
  # is compiled as in the preset dev.
  [cuda]='runner/cuda runner/core/platform/connect_nccl.h runner/core/platform/device_graph.h
          runner/core/platform/gpu_kernels.h runner/core/result.h runner/core/error.h components/tensor
          runner/cli/command/self_test.cpp tests/gpu
          tests/bench/peers tests/bench/recipes tests/bench/machine.py tests/bench/roux_*.py recipes/smoke'
  # What is packed beside what other stages compile, and how the program finds itself and torch.
  [wheel]='packaging tests/packaging runner/core/platform/python_package.cpp runner/cli/load_libraries.cpp
           runner/core/table/table_library.cpp runner/cli/command/examples recipes/quickstart.yaml include'
)
# Of each of them, beside the pins, the compiler's version and the processor.
common_inputs='.ci tests/run runner/cmake tests/CMakeLists.txt CMakeLists.txt CMakePresets.json'

do_set_up() { (setup_packages build test); }
do_build() { (setup_libtorch && setup_build "${labels[@]/#/check_}" check_fast check_processor roux roux_engine); }
do_tests() { run_tests "${labels[@]}"; }
do_processor() { tests/run processor; }
do_format() { runner/cmake/format.sh --dry-run -Werror; }
do_clang_tidy() { (setup_libtorch && setup_build generate) && runner/cmake/clang_tidy.sh build/dev; }

do_quickstart() {
  local out result
  out=$(mktemp -d)
  ./roux run recipes/quickstart.yaml --new --output-dir "$out" && ./roux runs show last --output-dir "$out"
  result=$?
  rm -rf "$out"
  return $result
}

do_fast() { run_tests fast; }
do_estimates() { run_tests estimates; }
do_device() { run_tests device; }
do_guides() { run_tests guides; }
do_ranks() { run_tests ranks; }
do_kills() { run_tests kills; }
do_readback() { run_tests verify readback; }
do_examples() { run_tests examples; }

# Presets of their own, which compile once more what they test: the layers that read a recipe, the store, the trackers
# and the sweeps. They build without LibTorch.
do_fuzz() {
  (roux_preset=asan roux_build=$roux_root/build/asan && setup_libtorch && setup_build fuzz_recipe &&
    ASAN_OPTIONS=abort_on_error=1 timeout 300 "$roux_build/bin/fuzz_recipe" --seconds "${FUZZ_SECONDS:-20}")
}

do_threads() {
  (roux_preset=tsan roux_build=$roux_root/build/tsan && setup_libtorch && setup_build check_threads &&
    ctest --test-dir "$roux_build" -L '^threads$' --output-on-failure --no-tests=error)
}

# Compiles and links what uses a GPU, packs it for a machine that has one, and runs what is to be run there up to the
# first call of CUDA.
do_cuda() {
  local empty result
  empty=$(mktemp -d)
  tests/gpu/bundle "$empty/roux-gpu.tar.gz" && tar -xzf "$empty/roux-gpu.tar.gz" -C "$empty" &&
    (cd "$empty" && PYTHONPATH=$(readlink -m "${ROUX_DEPS:-$roux_root/.deps}") roux-gpu/tests/gpu/run --pretend)
  result=$?
  rm -rf "$empty"
  return $result
}

# Of the preset cuda, which is compiled by then: a release differs in the compiler's flags, which packaging/wheel/build
# checks when one is made.
do_wheel() {
  local out result
  out=$(mktemp -d)
  ROUX_PRESET=cuda packaging/wheel/build "$out" && tests/packaging/run "$out"/roux-*.whl
  result=$?
  rm -rf "$out"
  return $result
}

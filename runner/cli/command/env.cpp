#include <sys/utsname.h>
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "runner/cli/commands.h"
#include "runner/cli/engine_or_fail.h"
#include "runner/cli/env_page.h"
#include "runner/cli/explain/show_launch.h"
#include "runner/cli/flags.h"
#include "runner/cli/launch_flags.h"
#include "runner/core/platform/machine.h"
#include "runner/core/platform/process.h"
#include "runner/core/platform/python_package.h"
#include "runner/core/units.h"
#include "runner/cuda/cuda.h"
#include "runner/resolve/recipe.h"

namespace runner::cli {
namespace {

using core::Node;

/// Shows the GPUs. Returns why there are none, "" if there are.
std::string show_gpus(EnvPage& page) {
  if (!cuda::has_driver()) return "none";
  const auto cuda = cuda::load_cuda();
  if (!cuda) return "driver found, but " + cuda.failure().message;
  if (cuda.value() == nullptr) {
    const core::Failure failure = core::no_gpu_libraries();
    return "driver found, but " + failure.message + " (" + failure.hint + ")";
  }
  page.add("CUDA", cuda.value()->versions(), "cuda");
  const auto gpus = cuda.value()->gpus();
  if (!gpus) return gpus.failure().message;
  Node rows = Node::sequence();
  for (const cuda::Gpu& gpu : gpus.value()) {
    const std::string capability = std::to_string(gpu.major) + "." + std::to_string(gpu.minor);
    page.line("GPU", gpu.name + ", " + core::format_bytes(gpu.memory_bytes) + ", compute capability " + capability);
    Node row = Node::mapping();
    row.set("name", Node::string(gpu.name));
    row.set("memory_bytes", Node::integer(gpu.memory_bytes));
    row.set("compute_capability", Node::string(capability));
    rows.items().push_back(std::move(row));
  }
  page.set("gpus", std::move(rows));
  return "";
}

void show_machine(EnvPage& page) {
  utsname system = {};
  uname(&system);
  const std::int64_t cores = sysconf(_SC_NPROCESSORS_ONLN);
  const std::int64_t memory_bytes = static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  page.add("roux", ROUX_VERSION, "version");
  page.add("program", core::own_program(), "program");
  if (const auto package = core::python_package(core::own_program())) {
    page.add("torch", (package->found.empty() ? "none" : package->found) + " in " + package->torch_folder, "torch");
  }
  page.add("system", std::string(system.sysname) + " " + system.release + " " + system.machine, "system");
  page.line("processor", core::cpu_name() + ", " + std::to_string(cores) + " cores");
  page.line("memory", core::format_bytes(memory_bytes));
  page.set("cpu", Node::string(core::cpu_name()));
  page.set("cores", Node::integer(cores));
  page.set("memory_bytes", Node::integer(memory_bytes));
  if (const std::string none = show_gpus(page); !none.empty()) {
    page.line("GPU", none);
    page.set("gpus", Node::sequence());
    if (none != "none") page.set("gpu_error", Node::string(none));
  }
}

void show_variables(EnvPage& page) {
  Node variables = Node::mapping();
  for (const char* name : {"OMP_NUM_THREADS", "ROUX_OUTPUT_DIR", "ROUX_CACHE_DIR", "NO_COLOR"}) {
    const char* value = std::getenv(name);
    if (value == nullptr) continue;
    page.line(name, value);
    variables.set(name, Node::string(value));
  }
  page.set("environment", std::move(variables));
}

void show_versions(const engine::Versions& versions, EnvPage& page) {
  page.add("LibTorch", versions.libtorch, "libtorch");
  page.add("CPU capability", versions.cpu_capability, "cpu_capability");
  page.add("fastest format", versions.fastest_precision, "fastest_precision");
  page.line("threads", std::to_string(versions.threads));
  page.set("threads", Node::integer(versions.threads));
}

void show_limits(const engine::MachineLimits& limits, EnvPage& page) {
  const auto show = [&page](const char* name, double per_second, const char* unit, const char* key) {
    page.line(name, core::format_count(per_second) + unit);
    page.set(key, Node::floating(per_second));
  };
  show("matmul float32", limits.matmul_fp32_flops, "FLOP/s", "matmul_float32_flops_per_s");
  show("matmul bfloat16", limits.matmul_bf16_flops, "FLOP/s", "matmul_bfloat16_flops_per_s");
  show("memory copy", limits.memory_bytes_per_s, "B/s", "memory_copy_bytes_per_s");
  show("disk write", limits.disk_write_bytes_per_s, "B/s", "disk_write_bytes_per_s");
  page.add("saved to", core::cache_dir(), "saved_to");
  if (!limits.doubt.empty()) page.add("doubt", limits.doubt, "doubt");
}

struct EnvFlags {
  RecipeFlags recipe;
  bool measure = false;
  std::string format = "text";
};

void environment(Session& session, const EnvFlags& flags) {
  EnvPage page(flags.format == "json");
  show_machine(page);
  show_variables(page);
  show_launch(session, flags.recipe, page);
  engine::Engine* engine = engine_or_fail(session);
  if (engine == nullptr) return page.finish();
  show_versions(engine->versions(), page);
  if (flags.measure) {
    std::fprintf(stderr, "measuring matmul, memory and disk; takes about four seconds\n");
    show_limits(engine->measure("."), page);
  }
  page.finish();
}

}  // namespace

void add_env(Command app, Session& session) {
  auto flags = std::make_shared<EnvFlags>();
  Command command = app.add_subcommand("env", "Show versions, hardware and launch settings");
  command.add_option("RECIPE", flags->recipe.path, "Recipe whose launch section to show");
  add_changes(command, flags->recipe);
  add_override_flags(command, flags->recipe);
  add_launch_flags(command, flags->recipe);
  command.add_flag("--measure", flags->measure,
                   "Measure the machine's peak performance; runs then report the fraction they reach");
  add_format(command, flags->format, {"text", "json"});
  command.footer(
      "\nExamples:\n"
      "  roux env\n"
      "  roux env --format json\n"
      "  srun -n 2 roux env recipe.yaml\n"
      "  roux env --measure");
  command.callback([&session, flags] { session.command = [&session, flags] { environment(session, *flags); }; });
}

}  // namespace runner::cli

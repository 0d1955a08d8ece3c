#include <sys/utsname.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>
#include <memory>

#include "runner/cli/commands.h"
#include "runner/cli/engine_or_fail.h"
#include "runner/cli/launch_flags.h"
#include "runner/cli/launch_set_up.h"
#include "runner/core/platform/machine.h"
#include "runner/core/units.h"
#include "runner/cuda/cuda.h"

namespace runner::cli {
namespace {

void line(const char* name, const std::string& value) { std::printf("%-16s %s\n", name, value.c_str()); }

std::string rate(double per_second, const char* unit) { return core::format_count(per_second) + unit; }

void show_gpus() {
  if (!cuda::has_driver()) return line("GPU", "none");
  const auto cuda = cuda::load_cuda();
  if (!cuda) return line("GPU", "driver found, but " + cuda.failure().message);
  if (cuda.value() == nullptr)
    return line("GPU", "driver found, but this build has no CUDA (build with ROUX_PRESET=cuda ./roux)");
  line("CUDA", cuda.value()->versions());
  const auto gpus = cuda.value()->gpus();
  if (!gpus) return line("GPU", gpus.failure().message);
  for (const cuda::Gpu& gpu : gpus.value()) {
    line("GPU", gpu.name + ", " + core::format_bytes(gpu.memory_bytes) + ", compute capability " +
                    std::to_string(gpu.major) + "." + std::to_string(gpu.minor));
  }
}

struct EnvFlags {
  RecipeFlags recipe;
  bool measure = false;
};

void environment(Session& session, const EnvFlags& flags) {
  utsname system = {};
  uname(&system);
  line("roux", ROUX_VERSION);
  line("system", std::string(system.sysname) + " " + system.release + " " + system.machine);
  line("processor", core::cpu_name() + ", " + std::to_string(sysconf(_SC_NPROCESSORS_ONLN)) + " cores");
  line("memory", core::format_bytes(static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE)));
  show_gpus();
  for (const char* name : {"OMP_NUM_THREADS", "ROUX_OUTPUT_DIR", "ROUX_CACHE_DIR", "NO_COLOR"}) {
    if (const char* value = std::getenv(name)) line(name, value);
  }
  show_launch(session, flags.recipe);
  engine::Engine* engine = engine_or_fail(session);
  if (engine == nullptr) return;
  std::printf("%s\n", engine->versions().c_str());
  if (!flags.measure) return;
  std::fprintf(stderr, "measuring matmul, memory and disk; takes about four seconds\n");
  const engine::MachineLimits limits = engine->measure(".");
  line("matmul float32", rate(limits.matmul_fp32_flops, "FLOP/s"));
  line("matmul bfloat16", rate(limits.matmul_bf16_flops, "FLOP/s"));
  line("memory copy", rate(limits.memory_bytes_per_s, "B/s"));
  line("disk write", rate(limits.disk_write_bytes_per_s, "B/s"));
  line("saved to", core::cache_dir());
}

}  // namespace

void add_env(CLI::App& app, Session& session) {
  auto flags = std::make_shared<EnvFlags>();
  CLI::App* command = app.add_subcommand("env", "Show versions, hardware and launch settings");
  command->add_option("RECIPE", flags->recipe.path, "Recipe whose launch section to show");
  add_changes(*command, flags->recipe);
  add_override_flags(*command, flags->recipe);
  add_launch_flags(*command, flags->recipe);
  command->add_flag("--measure", flags->measure,
                    "Measure the machine's peak performance; runs then report the fraction they reach");
  command->footer(
      "\nExamples:\n"
      "  roux env\n"
      "  srun -n 2 roux env recipe.yaml\n"
      "  roux env --measure");
  command->callback([&session, flags] { session.command = [&session, flags] { environment(session, *flags); }; });
}

}  // namespace runner::cli

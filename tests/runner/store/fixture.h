#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "runner/core/clock.h"
#include "runner/store/run_reader.h"
#include "runner/store/run_writer.h"

namespace store_test {

/// Time stands still until a test moves it.
class FixedClock final : public runner::core::Clock {
 public:
  std::int64_t wall_ms() const override { return now_ms; }
  std::int64_t monotonic_ns() const override { return now_ms * 1'000'000; }

  std::atomic<std::int64_t> now_ms = 1'800'000'000'000;  // 2027-01-15 08:00:00 UTC
};

/// An output_dir of its own for each test, gone afterwards.
struct OutputDir {
  OutputDir() {
    std::string pattern = (std::filesystem::temp_directory_path() / "roux-store-XXXXXX").string();
    path = mkdtemp(pattern.data());
  }
  ~OutputDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  OutputDir(const OutputDir&) = delete;
  OutputDir& operator=(const OutputDir&) = delete;

  std::string path;
};

inline runner::store::NewRun new_run(const OutputDir& output, const std::string& name = "tiny") {
  runner::store::NewRun run;
  run.output_dir = output.path;
  run.run_name = name;
  run.recipe_hash = "0123456789abcdef";
  run.resolved_json = R"({"optimizer": {"type": "adamw", "lr": 0.001}, "training": {"max_steps": 10}})";
  run.recipe_files = {{"recipe.yaml", "run_name: tiny\n"}, {"recipe/lib/base.yaml", "seed: 1\n"}};
  run.command_line = {"roux", "run", "recipe.yaml"};
  return run;
}

inline std::unique_ptr<runner::store::RunWriter> create(const runner::store::NewRun& run,
                                                        const runner::core::Clock& clock) {
  return std::move(runner::store::RunWriter::create(run, clock)).value();
}

inline void log(runner::store::RunWriter& writer, const std::string& name, std::int64_t step, double value,
                const std::string& context = "train") {
  const runner::store::MetricValue row{writer.metric(name, context), value};
  writer.log(step, {&row, 1});
}

}  // namespace store_test

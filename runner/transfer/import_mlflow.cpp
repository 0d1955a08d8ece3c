#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <sstream>

#include "runner/core/platform/files.h"
#include "runner/core/scalar.h"
#include "runner/recipe/read.h"
#include "runner/transfer/import.h"
#include "runner/transfer/import_mlflow.h"

// The folders of MLflow's file store: EXPERIMENT/RUN/{meta.yaml, params/NAME, metrics/NAME, tags/NAME}. A name with
// slashes is a path.

namespace runner::transfer {
namespace {

namespace fs = std::filesystem;

using core::Node;

constexpr std::int64_t kFileBytesMax = std::int64_t{1} << 30;

/// Nothing where that is no YAML.
std::optional<std::map<std::string, std::string>> read_meta(const std::string& path, const std::string& text) {
  core::Diagnostics ignored;
  const auto source = std::make_shared<core::Source>(core::Source{path, text, core::Source::Kind::kFile});
  const auto node = recipe::read_yaml(source, {}, ignored);
  if (!node || !node->is_mapping()) return std::nullopt;
  std::map<std::string, std::string> meta;
  for (const Node::Entry& entry : node->entries()) {
    if (!entry.value.is_null()) meta[entry.key] = entry.value.scalar_text();
  }
  return meta;
}

std::int64_t integer(const std::string& text) {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// Each file below a folder, by its path there.
std::map<std::string, std::string> files_below(const fs::path& folder) {
  std::map<std::string, std::string> files;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    if (!at->is_regular_file(ignored)) continue;
    files[at->path().lexically_relative(folder).string()] = at->path().string();
  }
  return files;
}

/// Lines of `TIME_MS VALUE STEP`; before MLflow knew steps there were none.
std::vector<ForeignRun::Point> read_points(const std::string& text) {
  std::vector<ForeignRun::Point> points;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string time, value, step;
    words >> time >> value >> step;
    double number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || end != value.data() + value.size()) continue;
    points.push_back({integer(step), integer(time), number});
  }
  std::stable_sort(points.begin(), points.end(), [](const auto& a, const auto& b) { return a.step < b.step; });
  return points;
}

core::Result<ForeignRun> read_run(const fs::path& folder, const std::map<std::string, std::string>& meta) {
  const auto at = [&](const char* key) {
    const auto found = meta.find(key);
    return found == meta.end() ? std::string() : found->second;
  };
  ForeignRun run;
  run.tool = "mlflow";
  run.source = fs::absolute(folder).lexically_normal().string();
  run.name = at("run_name").empty() ? at("run_id") : at("run_name");
  run.began_ms = integer(at("start_time"));
  run.ended_ms = integer(at("end_time"));
  run.status = mlflow_status(at("status"));
  const auto each = [&](const char* part, auto take) -> core::Result<void> {
    for (const auto& [name, path] : files_below(folder / part)) {
      const auto text = core::read_file(path, kFileBytesMax);
      if (!text) return text.failure();
      take(name, text.value().substr(0, text.value().find_last_not_of('\n') + 1));
    }
    return {};
  };
  auto done =
      each("metrics", [&](const std::string& name, const std::string& text) { run.series[name] = read_points(text); });
  if (done) {
    done = each("params", [&](const std::string& name, const std::string& text) {
      run.parameters.set(name, mlflow_parameter(text));
    });
  }
  if (done) {
    done = each("tags", [&](const std::string& name, const std::string& text) {
      if (name == "mlflow.note.content") run.note = text;
      if (!name.starts_with("mlflow.")) run.tags.push_back(name + "=" + text);
    });
  }
  if (!done) return done.failure();
  return run;
}

}  // namespace

Node mlflow_parameter(const std::string& text) {
  auto value = core::resolve_scalar(text);
  return value && !value.value().is_null() ? std::move(value).value() : Node::string(text);
}

std::string mlflow_status(const std::string& text) {
  if (text == "3" || text == "FINISHED") return "finished";
  return text == "4" || text == "FAILED" ? "failed" : "stopped";
}

core::Result<std::vector<ForeignRun>> read_mlflow(const std::string& path) {
  std::vector<ForeignRun> runs;
  std::error_code error;
  if (!fs::is_directory(path, error)) return runs;
  std::vector<fs::path> metas;
  if (fs::exists(fs::path(path) / "meta.yaml", error)) metas.push_back(fs::path(path) / "meta.yaml");
  for (fs::recursive_directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
    // Runs lie two levels below the store, and what is below them are files of their own.
    if (at.depth() >= 2) at.disable_recursion_pending();
    if (at->path().filename() == "meta.yaml" && at.depth() > 0) metas.push_back(at->path());
  }
  std::sort(metas.begin(), metas.end());
  std::vector<std::string> problems;
  for (const fs::path& file : metas) {
    const auto text = core::read_file(file.string(), kFileBytesMax);
    if (!text) return text.failure();
    const auto meta = read_meta(file.string(), text.value());
    if (!meta) problems.push_back(file.string() + " is not YAML: skipping this run");
    if (!meta || !meta->contains("run_id")) continue;  // an experiment's
    if (const auto stage = meta->find("lifecycle_stage"); stage != meta->end() && stage->second == "deleted") {
      problems.push_back(file.parent_path().string() + " was deleted in MLflow: skipping this run");
      continue;
    }
    auto run = read_run(file.parent_path(), *meta);
    if (!run) return run.failure();
    runs.push_back(std::move(run).value());
  }
  if (runs.empty() && !problems.empty()) return core::Failure{problems.front()};
  if (!runs.empty()) runs.front().problems = std::move(problems);
  return runs;
}

}  // namespace runner::transfer

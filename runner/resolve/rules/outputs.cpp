#include "runner/resolve/rules/rules.h"

#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include "runner/core/text/text.h"

namespace runner::resolve {

using core::Node;

/// Words that stand for other runs and checkpoints wherever a run is named.
void run_name_words(SettledTree& tree) {
  const std::string name = tree.text("run_name").value_or("");
  if (name != "last" && name != "best") return;
  tree.error("run_name", "run_name must not be \"" + name + "\": commands use it for the newest or the best",
             "choose another name, such as " + name + "-1");
}

/// A tracker's place in a run is kept by its name.
void tracker_names(SettledTree& tree) {
  const Node* trackers = tree.value("trackers");
  if (trackers == nullptr) return;
  std::map<std::string, std::size_t> first;
  for (std::size_t i = 0; i < trackers->items().size(); ++i) {
    const std::string path = "trackers[" + std::to_string(i) + "]";
    const auto type = tree.text(path + ".type"), given = tree.text(path + ".name");
    if (!type) continue;
    const auto [at, is_new] = first.emplace(given.value_or(*type), i);
    if (is_new) continue;
    tree.error(
        given ? path + ".name" : path,
        path + " is called " + core::in_quotes(at->first) + ", and so is trackers[" + std::to_string(at->second) + "]",
        "give each its own `name`");
  }
}

/// Where a tracker writes files, as the recipe has it. Two of a kind that write to one place would undo each other's
/// work; those that are not named here tell each other apart.
void tracker_places(SettledTree& tree) {
  static const std::map<std::string, const char*> kPlaces = {
      {"csv", "path"},    {"jsonl", "path"},  {"tensorboard", "logging_dir"}, {"comet_ml", "offline_directory"},
      {"clearml", "dir"}, {"dvclive", "dir"},
  };
  const Node* trackers = tree.value("trackers");
  if (trackers == nullptr) return;
  std::map<std::string, std::size_t> first;
  for (std::size_t i = 0; i < trackers->items().size(); ++i) {
    const std::string path = "trackers[" + std::to_string(i) + "]";
    const auto type = tree.text(path + ".type");
    const auto key = type ? kPlaces.find(*type) : kPlaces.end();
    if (key == kPlaces.end()) continue;
    const std::string where = path + "." + key->second;
    const auto place = tree.text(where);
    if (!place) continue;
    const auto [at, is_new] = first.emplace(std::filesystem::path(*place).lexically_normal().string(), i);
    if (is_new) continue;
    tree.error(
        where,
        path + " writes to " + core::in_quotes(*place) + ", and so does trackers[" + std::to_string(at->second) + "]",
        "give each its own path");
  }
}

namespace {

constexpr const char* kActivities = "profiler.activities";

/// The device must be able to record the activities, and these must have what the table is sorted by.
void check_profile(SettledTree& tree, const std::string& device) {
  const Node* activities = tree.value(kActivities);
  if (activities == nullptr || !activities->is_sequence()) return;
  bool has_cpu = false;
  std::string cuda;  // its path
  for (std::size_t i = 0; i < activities->items().size(); ++i) {
    const std::string path = kActivities + ("[" + std::to_string(i) + "]");
    if (tree.text(path) == "cpu") has_cpu = true;
    if (tree.text(path) == "cuda") cuda = path;
  }
  if (!cuda.empty() && device == "cpu") {
    tree.error(cuda, "activities lists cuda, but the training is on the CPU",
               "write activities: cpu, or set device: cuda");
  } else if (!cuda.empty() && !has_cpu) {
    tree.error(cuda, "activities lists cuda without cpu, which records the steps and what starts the kernels",
               "write activities: [cpu, cuda]");
  }
  const std::string sort_by = tree.text("profiler.sort_by").value_or("");
  const bool is_open = device == "auto" && !tree.written(kActivities);
  if (!cuda.empty() || is_open || sort_by.find("cuda") == std::string::npos) return;
  tree.error("profiler.sort_by", "sort_by is " + sort_by + ", but activities does not list cuda",
             device == "cpu" ? "sort by self_cpu_time_total" : "write activities: [cpu, cuda]");
}

}  // namespace

/// Any setting of a profile enables it.
void profiler_activities(SettledTree& tree) {
  const std::string device = tree.text("device").value_or("auto");
  const auto record = [&tree, &device](const std::string& path) {
    Node activities = Node::sequence({Node::string("cpu")});
    if (device != "cpu" && device != "auto") activities.items().push_back(Node::string("cuda"));
    tree.fill(kActivities, std::move(activities), "settled by " + path);
  };
  for (const char* key : {"record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules"}) {
    const std::string path = std::string("profiler.") + key;
    if (tree.is_true(path)) record(path);
  }
  if (tree.text("profiler.output_trace_dir")) record("profiler.output_trace_dir");
  check_profile(tree, device);
}

}  // namespace runner::resolve

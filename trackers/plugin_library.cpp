#include "trackers/plugin_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>
#include <vector>

#include "runner/core/error.h"
#include "trackers/io/json_text.h"
#include "trackers/plugin_abi.h"

namespace trackers {
namespace {

using runner::core::Node;
using Remedy = TrackerError::Remedy;

/// A plugin that exits the program within a call would look like a complete sync.
bool inside_call = false;

void refuse_to_leave() {
  if (inside_call) _exit(runner::core::kExitFailed);
}

std::string run_text(const Run& run, bool resumed) {
  const auto list = [](const std::vector<std::string>& words) {
    Node items = Node::sequence();
    for (const std::string& word : words) items.items().push_back(Node::string(word));
    return items;
  };
  Node about = Node::mapping();
  about.set("id", Node::string(run.id));
  about.set("name", Node::string(run.name));
  about.set("project", Node::string(run.project));
  about.set("dir", Node::string(run.dir));
  about.set("created_ms", Node::integer(run.created_ms));
  about.set("tags", list(run.tags));
  about.set("command_line", list(run.command_line));
  about.set("resumed", Node::boolean(resumed));
  return runner::core::to_json(about, -1);
}

class PluginLibrary final : public Tracker {
 public:
  PluginLibrary(std::string path, const roux_tracker& functions) : path_(std::move(path)), of_(functions) {}
  ~PluginLibrary() override {
    if (of_.destroy != nullptr) of_.destroy(of_.self);
  }
  PluginLibrary(const PluginLibrary&) = delete;
  PluginLibrary& operator=(const PluginLibrary&) = delete;

  void start(const Run& run, const Node& state) override {
    call(of_.start, run_text(run, state.is_string()).c_str(), state.is_string() ? state.as_string().c_str() : nullptr);
    call(of_.config, runner::core::to_json(run.config, -1).c_str());
  }

  void rewind(std::int64_t step) override { call(of_.rewind, step); }

  void log(std::span<const Point> points) override {
    std::vector<roux_point> given;
    given.reserve(points.size());
    for (const Point& point : points) given.push_back({point.name->c_str(), point.step, point.time_ms, point.value});
    call(of_.log, given.data(), given.size());
  }

  void log_text(const Text& text) override {
    call(of_.text, text.name.c_str(), text.step, text.time_ms, text.text.c_str());
  }

  void log_image(const Image& image) override {
    call(of_.image, image.name.c_str(), image.step, image.time_ms, image.path.c_str(), image.caption.c_str());
  }

  void log_table(const Table& table) override {
    call(of_.table, table.name.c_str(), table.step, table.time_ms, json_text(table).c_str());
  }

  void log_histogram(const Histogram& histogram) override {
    call(of_.histogram, histogram.name.c_str(), histogram.step, histogram.time_ms, histogram.least, histogram.most,
         histogram.counts.data(), histogram.counts.size());
  }

  void log_artifact(const Artifact& artifact) override {
    call(of_.artifact, artifact.name.c_str(), artifact.step, artifact.time_ms, artifact.kind.c_str(),
         artifact.path.c_str());
  }

  void flush(bool durable) override { call(of_.flush, durable ? 1 : 0); }

  Node state() const override {
    const char* text = of_.state != nullptr ? of_.state(of_.self) : nullptr;
    return text != nullptr ? Node::string(text) : Node::string("");
  }

  void finish(const End& end) override {
    if (end.ending == Ending::kOpen) return;
    call(of_.finish, std::string(to_text(end.ending)).c_str(), end.reason.c_str());
  }

 private:
  template <typename Function, typename... Arguments>
  void call(Function function, Arguments... arguments) {
    if (function == nullptr) return;
    inside_call = true;
    const int answer = function(of_.self, arguments...);
    inside_call = false;
    if (answer == ROUX_TAKEN) return;
    const char* words = of_.problem != nullptr ? of_.problem(of_.self) : nullptr;
    const std::string why = path_ + ": " + (words != nullptr && *words != '\0' ? words : "it refused the data");
    throw TrackerError(answer == ROUX_TRY_AGAIN   ? Remedy::kRetry
                       : answer == ROUX_LEAVE_OUT ? Remedy::kReject
                                                  : Remedy::kPause,
                       why);
  }

  const std::string path_;
  const roux_tracker of_;
};

}  // namespace

std::unique_ptr<Tracker> open_plugin_library(const std::string& path, const std::string& options) {
  // A bare name would be searched in the system's library path.
  const std::string place = path.find('/') == std::string::npos ? "./" + path : path;
  void* library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw TrackerError(Remedy::kPause, std::string("cannot load the plugin: ") + dlerror());
  const auto open = reinterpret_cast<decltype(&roux_tracker_open)>(dlsym(library, "roux_tracker_open"));
  if (open == nullptr) {
    throw TrackerError(Remedy::kPause, path + " has no roux_tracker_open()",
                       "see trackers/plugin_abi.h; in C++ declare it extern \"C\"");
  }
  std::atexit(refuse_to_leave);
  inside_call = true;
  const roux_tracker* made = open(options.c_str());
  inside_call = false;
  if (made == nullptr) throw TrackerError(Remedy::kPause, path + ": roux_tracker_open() returns null");
  if (made->abi != ROUX_TRACKER_ABI) {
    throw TrackerError(Remedy::kPause,
                       path + " is made for plugin interface " + std::to_string(made->abi) + ", this is " +
                           std::to_string(ROUX_TRACKER_ABI),
                       "compile it with the trackers/plugin_abi.h of this version");
  }
  return std::make_unique<PluginLibrary>(path, *made);
}

}  // namespace trackers

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "runner/core/platform/gpu_usage.h"
#include "runner/recipe/compose.h"

namespace runner::resolve {

/// What the rules ask their caller.
struct SettleContext {
  /// The metric that a word names or most likely means, for hints; "" for none.
  std::function<std::string(const std::string&)> meant_metric = {};
  /// How an optimizer updates parameters (`x-update`).
  std::function<std::string(const std::string& type)> update_of = {};
  /// What a loss measures of every evaluated set beside itself, and a metric in place of its name (`x-measures`).
  std::function<std::vector<std::string>(const std::string& kind, const std::string& type)> measures = {};
  /// What the target of a loss or metric holds (`x-target`); "" for neither.
  std::function<std::string(const std::string& kind, const std::string& type)> target_of = {};
  /// The metrics whose target is of that kind, by name.
  std::function<std::vector<std::string>(const std::string& target)> metrics_of = {};
  /// The key and its value with which a metric has a value for each class (`x-by-class`); empty ones for none.
  std::function<std::pair<std::string, std::string>(const std::string& metric)> by_class = {};
  std::function<int()> usable_gpus = [] { return core::usable_gpus(); };
  /// The files that the recipe was read from.
  std::vector<std::shared_ptr<const core::Source>> sources = {};
  /// Where the recipe is the recording of a run.
  std::optional<recipe::Recording> recording = {};
};

/// A validated recipe for the rules between sections: values by path, written or default, and errors that point at what
/// the author wrote.
class SettledTree {
 public:
  SettledTree(core::Node& root, core::Diagnostics& diagnostics, SettleContext context)
      : root_(root), diagnostics_(diagnostics), context_(std::move(context)) {}

  const core::Node& root() const { return root_; }
  core::Diagnostics& diagnostics() { return diagnostics_; }

  /// Null when absent, null or refused by validation.
  const core::Node* value(const std::string& path) const;
  std::optional<std::int64_t> integer(const std::string& path) const;
  std::optional<std::string> text(const std::string& path) const;
  bool is_true(const std::string& path) const;
  /// Written with a value, even with one that validation refused.
  bool given(const std::string& path) const;
  /// The same, but not where the value is a default.
  bool written(const std::string& path) const;
  /// Written by a flag, a variable of the environment or a file of `--set-file`, or the default in a block that these
  /// replace as a whole, as `--set launch=null` does.
  bool is_of_this_call(const std::string& path) const;
  bool was_refused(const std::string& path) const;

  /// Sets a value that the author left open; written values stay.
  void fill(const std::string& path, core::Node value, const std::string& why,
            core::Origin origin = core::Origin::kSettled);

  /// Sets a number for the word `auto`, with the reason in its history: `auto: one per GPU`.
  void replace_auto(const std::string& path, std::int64_t number, const std::string& why);

  /// Sets a value that is not the author's in place of one that has no effect, with the reason in its history.
  void replace_idle(const std::string& path, core::Node value, const std::string& why);

  /// At the value of `path`, or at the nearest enclosing block in the recipe; else at the recipe as a whole.
  void error(const std::string& path, std::string message, core::Hint hint = {});
  void warning(const std::string& path, std::string message, core::Hint hint = {});
  void notice(const std::string& path, std::string message, core::Hint hint = {});
  void error_at(const core::Location& location, std::string message, core::Hint hint = {});

  /// The metric of this name, or the one most likely meant: `accuracy` for `acc`. "" for none.
  std::string meant_metric(const std::string& word) const {
    return context_.meant_metric ? context_.meant_metric(word) : word;
  }
  std::string update_of(const std::string& optimizer) const {
    return context_.update_of ? context_.update_of(optimizer) : "elementwise";
  }
  std::vector<std::string> measures(const std::string& kind, const std::string& type) const {
    return context_.measures ? context_.measures(kind, type) : std::vector<std::string>();
  }
  std::string target_of(const std::string& kind, const std::string& type) const {
    return context_.target_of ? context_.target_of(kind, type) : "";
  }
  std::vector<std::string> metrics_of(const std::string& target) const {
    return context_.metrics_of ? context_.metrics_of(target) : std::vector<std::string>();
  }
  std::pair<std::string, std::string> by_class(const std::string& metric) const {
    return context_.by_class ? context_.by_class(metric) : std::pair<std::string, std::string>();
  }
  /// The number of GPUs that a training on this machine can use.
  int usable_gpus() const { return context_.usable_gpus(); }
  const std::vector<std::shared_ptr<const core::Source>>& sources() const { return context_.sources; }
  const std::optional<recipe::Recording>& recording() const { return context_.recording; }

  /// `micro_batch_size 8 (line 12)`, or without the line if unknown.
  std::string with_line(const std::string& path) const;

 private:
  core::Location location_of(std::string path) const;

  core::Node& root_;
  core::Diagnostics& diagnostics_;
  SettleContext context_;
};

}  // namespace runner::resolve

#include "runner/resolve/changes.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <system_error>

#include "runner/core/diagnostics.h"
#include "runner/core/platform/files.h"
#include "runner/recipe/read.h"
#include "runner/recipe/renamed_keys.h"
#include "runner/resolve/former_values.h"

namespace runner::resolve {
namespace {

namespace fs = std::filesystem;

using core::Node;

bool is_default(const Node& node) { return node.is_null() || node.has_origin(core::Origin::kDefault); }

/// JSON has no infinity: a settled recipe has the text "inf" for `.inf`.
bool is_infinity(const Node& text, const Node& number) {
  return text.is_string() && number.is_number() && !std::isfinite(number.as_double()) &&
         core::to_json(text, -1) == core::to_json(number, -1);
}

/// A settled recipe says 10000 where a default is a number and the written one 1e4: the same value.
bool same(const Node& a, const Node& b) {
  return a.same_value(b) || (a.is_number() && b.is_number() && a.as_double() == b.as_double()) || is_infinity(a, b) ||
         is_infinity(b, a);
}

class Walk {
 public:
  /// `before` and `after` are the mappings that hold the two, for their locations.
  void compare(const std::string& path, const Node* before, const Node* after, const Node& holds_before,
               const Node& holds_after) {
    if (before == nullptr && is_default(*after)) return;
    if (after == nullptr && is_default(*before)) return;
    if (before != nullptr && after != nullptr) {
      if (same(*before, *after)) return;
      if (before->is_mapping() && after->is_mapping()) return compare_mappings(path, *before, *after);
      if (before->is_sequence() && after->is_sequence() && before->items().size() == after->items().size()) {
        for (std::size_t i = 0; i < before->items().size(); ++i) {
          compare(path + "[" + std::to_string(i) + "]", &before->items()[i], &after->items()[i], *before, *after);
        }
        return;
      }
    }
    Change change;
    change.path = path;
    change.before_location = (before != nullptr ? before : &holds_before)->location();
    change.after_location = (after != nullptr ? after : &holds_after)->location();
    if (before != nullptr) change.before = *before;
    if (after != nullptr) change.after = *after;
    changes.push_back(std::move(change));
  }

  std::vector<Change> changes;

 private:
  void compare_mappings(const std::string& path, const Node& before, const Node& after) {
    const auto below = [&path](const std::string& key) { return path.empty() ? key : path + "." + key; };
    for (const auto& entry : after.entries()) {
      compare(below(entry.key), before.find(entry.key), &entry.value, before, after);
    }
    for (const auto& entry : before.entries()) {
      if (after.find(entry.key) == nullptr) compare(below(entry.key), &entry.value, nullptr, before, after);
    }
  }
};

/// Values of the run's own files that `written` says in the same way get their location there.
class Relocation {
 public:
  explicit Relocation(const std::string& run_dir) : below_((fs::path(run_dir) / "").string()) {}

  void apply(Node& settled, const Node& written) const {
    if (settled.is_mapping() && written.is_mapping()) {
      move(settled, written);
      for (Node::Entry& entry : settled.entries()) {
        if (const Node* there = written.find(entry.key)) apply(entry.value, *there);
      }
    } else if (settled.is_mapping() && written.is_string()) {  // `loss: mse` is short for {type: mse}
      if (Node* type = settled.find("type"); type != nullptr && type->same_value(written)) {
        move(settled, written);
        move(*type, written);
      }
    } else if (settled.is_sequence() && written.is_sequence() && settled.items().size() == written.items().size()) {
      move(settled, written);
      for (std::size_t i = 0; i < settled.items().size(); ++i) apply(settled.items()[i], written.items()[i]);
    } else if (same(settled, written)) {
      move(settled, written);
    }
  }

 private:
  /// A flag of this call, or a file that it names, stays the place of its value.
  void move(Node& settled, const Node& written) const {
    const core::Location& now = settled.location();
    if (now.known() && now.source->name.starts_with(below_)) settled.set_location(written.location());
  }

  std::string below_;  ///< begins the names of the run's files
};

std::optional<Node> read_located(const std::string& path, bool yaml) {
  const recipe::Limits limits;
  auto text = core::read_file(path, limits.file_bytes_max);
  if (!text) return std::nullopt;
  auto source = std::make_shared<core::Source>(core::Source{path, std::move(text).value(), core::Source::Kind::kFile});
  core::Diagnostics ignored;
  auto node = yaml ? recipe::read_yaml(source, limits, ignored) : recipe::read_json(source, limits, ignored);
  if (node) recipe::rename_keys(*node);
  return node;
}

/// The recipe as it was written and what it extends, the recipe last: its locations have priority.
std::vector<std::string> written_files(const std::string& run_dir) {
  std::vector<std::string> files;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(fs::path(run_dir) / "recipe", ignored)) {
    files.push_back(entry.path().string());
  }
  std::sort(files.rbegin(), files.rend());
  for (const char* ending : {".yaml", ".yml", ".json"}) {
    if (const fs::path path = fs::path(run_dir) / (std::string("recipe") + ending); fs::exists(path, ignored)) {
      files.push_back(path.string());
    }
  }
  return files;
}

std::string text_of(const std::optional<Node>& node) {
  if (!node) return "absent";
  if (node->is_string()) return node->as_string().empty() ? "\"\"" : node->as_string();
  if (node->is_number() && !std::isfinite(node->as_double())) return node->scalar_text();  // JSON has no word for it
  return core::to_json(*node, -1);
}

}  // namespace

std::string Change::before_text() const { return text_of(before); }
std::string Change::after_text() const { return text_of(after); }

std::vector<Change> list_changes(const Node& before, const Node& after) {
  Walk walk;
  const Node former = former_values(after, before);
  if (former.entries().empty()) {
    walk.compare("", &before, &after, before, after);
  } else {
    Node kept = after;
    set_values(kept, former);
    walk.compare("", &before, &kept, before, kept);
  }
  return std::move(walk.changes);
}

core::Result<Node> read_recorded_recipe(const std::string& run_dir, const std::string& resolved_path) {
  auto settled = read_located(resolved_path, false);
  if (!settled) {
    return core::Failure{"the recorded recipe " + resolved_path + " is missing or damaged",
                         "start a new run with `roux run RECIPE --new`; its checkpoints can still be named by path"};
  }
  locate_as_written(*settled, run_dir);
  return std::move(*settled);
}

void locate_as_written(Node& settled, const std::string& run_dir) {
  const Relocation relocation(run_dir);
  for (const std::string& file : written_files(run_dir)) {
    const auto written = read_located(file, !file.ends_with(".json"));
    if (written) relocation.apply(settled, *written);
  }
}

}  // namespace runner::resolve

#include "runner/train/save/data_changes.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "runner/resolve/rules/streamed_set.h"

// g++ 12 sees an overflow in sums of strings where there is none (its bug 105651).
#pragma GCC diagnostic ignored "-Wrestrict"

namespace runner::train {
namespace {

namespace fs = std::filesystem;

using core::Node;

std::string where_it_was(const artifact::Provenance& provenance, const artifact::DataFile& file) {
  std::error_code ignored;
  const bool is_relative = !file.path.empty() && file.path[0] != '/' && !provenance.folder.empty();
  if (!is_relative || fs::equivalent(provenance.folder, ".", ignored)) return "restore the file";
  if (fs::exists(fs::path(provenance.folder) / file.path, ignored)) {
    return "the run was started in " + provenance.folder + ", and the path is relative to that folder: start it there";
  }
  return "restore the file; the run was started in " + provenance.folder + ", and the path is relative to that folder";
}

std::vector<const artifact::DataFile*> training_files(const artifact::Provenance& provenance) {
  std::vector<const artifact::DataFile*> files;
  for (const artifact::DataFile& file : provenance.data) {
    if (file.set == "train") files.push_back(&file);
  }
  return files;
}

}  // namespace

std::vector<Difference> list_data_changes(const artifact::Provenance& provenance, const Node& recipe,
                                          const std::optional<std::vector<std::string>>& files) {
  std::vector<Difference> changes;
  const Node* train = recipe.at_path("data.train");
  const bool is_stream = train != nullptr && resolve::streaming_of(*train) != nullptr;
  const auto add = [&](const std::string& set, const std::string& before, const std::string& after) {
    Difference change;
    change.key = "data." + set;
    change.before = before;
    change.after = after;
    const Node* path = recipe.at_path(change.key + ".path");
    if (path == nullptr) path = recipe.at_path(change.key);
    if (path != nullptr) change.location = path->location();
    change.effect = set == "train" ? Effect::kChangesResults : Effect::kHarmless;
    changes.push_back(std::move(change));
  };
  // What the places in the state of a stream would not be in.
  const auto add_file = [&](const std::string& set, const std::string& before, const std::string& after) {
    add(set, before, after);
    if (set != "train" || !is_stream) return;
    changes.back().effect = Effect::kImpossible;
    changes.back().hint = "restore the files to resume that run, or start a new one with `roux run RECIPE --new`";
  };
  const auto bytes = [](const artifact::DataFile& file) { return std::to_string(file.bytes) + " bytes"; };
  std::set<std::string> recorded;
  for (const artifact::DataFile& file : provenance.data) {
    if (recipe.at_path("data." + file.set) == nullptr) continue;
    if (file.set == "train") recorded.insert(file.path);
    const auto now = artifact::stat_data_file(file.set, file.path);
    if (!now) {
      add_file(file.set, file.path + " of " + bytes(file), "gone or unreadable");
      // What the recipe names cannot be read either, whether or not the change is allowed.
      if (!files && changes.back().effect == Effect::kChangesResults) {
        changes.back().hint = where_it_was(provenance, file);
        changes.back().hint_is_all = true;
      }
      continue;
    }
    if (now.value().bytes == file.bytes && now.value().mtime_ns == file.mtime_ns) continue;
    // A size may change without the samples (a log that grows after the split), but that is unknown here.
    if (now.value().bytes != file.bytes) {
      add_file(file.set, file.path + " of " + bytes(file), bytes(now.value()));
      continue;
    }
    const auto read = artifact::read_data_file(file.set, file.path);
    if (file.checksum.empty() || !read) {
      add(file.set, file.path, "modified since, and it was not read to its end then");
    } else if (read.value().checksum != file.checksum) {
      add(file.set, file.path + " with " + file.checksum, read.value().checksum);
    }
  }
  if (files && !provenance.data.empty()) {
    const std::size_t first = changes.size();
    for (const std::string& path : *files) {
      if (!recorded.contains(path)) add_file("train", "without " + path, "with it");
    }
    for (const std::string& path : recorded) {
      if (std::find(files->begin(), files->end(), path) == files->end())
        add_file("train", "with " + path, "without it");
    }
    if (changes.size() == first) {
      std::vector<std::string> order;
      for (const artifact::DataFile& file : provenance.data) {
        if (file.set == "train") order.push_back(file.path);
      }
      const auto differs = std::mismatch(order.begin(), order.end(), files->begin(), files->end());
      if (differs.first != order.end() && differs.second != files->end()) {
        add("train", "read with " + *differs.first + " first", "read with " + *differs.second + " first");
      }
    }
    const Node* split_by = recipe.at_path("data.train.split_by");
    if (split_by != nullptr && split_by->is_string() && split_by->as_string() == "files") {
      for (std::size_t i = first; i < changes.size(); ++i) {
        changes[i].why =
            "split_by: files goes by the path below the pattern's folder; earlier versions of roux went by the path "
            "from the current folder";
      }
    }
  }
  return changes;
}

bool may_have_moved(const artifact::Provenance& provenance) {
  const auto files = training_files(provenance);
  return !files.empty() && std::all_of(files.begin(), files.end(),
                                       [](const artifact::DataFile* file) { return !file->checksum.empty(); });
}

std::optional<artifact::Provenance> with_training_data_at(const artifact::Provenance& provenance,
                                                          const std::vector<std::string>& files) {
  if (!may_have_moved(provenance) || training_files(provenance).size() != files.size()) return std::nullopt;
  artifact::Provenance moved = provenance;
  auto path = files.begin();
  for (artifact::DataFile& file : moved.data) {
    if (file.set != "train") continue;
    // Sizes first: they tell most other files apart without reading any.
    const auto now = artifact::stat_data_file(file.set, *path);
    const bool same_name = fs::path(file.path).filename() == fs::path(*path).filename();
    if (!now || !same_name || now.value().bytes != file.bytes) return std::nullopt;
    ++path;
  }
  path = files.begin();
  for (artifact::DataFile& file : moved.data) {
    if (file.set != "train") continue;
    auto now = artifact::read_data_file(file.set, *path++);
    if (!now || now.value().checksum != file.checksum) return std::nullopt;
    file = std::move(now).value();
  }
  return moved;
}

bool is_path_of_training_data(const Difference& difference) {
  std::string_view key = difference.key;
  if (key.ends_with(']')) key = key.substr(0, key.rfind('['));
  return key.starts_with("data.train.") && key.ends_with(".path");
}

}  // namespace runner::train

#include "runner/engine/run_record.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "runner/artifact/checkpoint_dir.h"
#include "runner/artifact/checkpoint_name.h"
#include "runner/artifact/provenance/provenance.h"
#include "runner/core/clock.h"
#include "runner/core/error.h"
#include "runner/core/json.h"
#include "runner/core/log.h"
#include "runner/core/text/text.h"
#include "runner/distributed/process_group.h"
#include "runner/resolve/changes.h"
#include "runner/store/run_files.h"
#include "runner/store/run_reader.h"

namespace runner::engine {
namespace {

namespace fs = std::filesystem;

using core::Node;

/// The runs that a checkpoint's short name may refer to, newest first.
std::vector<store::RunSummary> candidate_runs(const resolve::Recipe& recipe, const EvalRequest& request) {
  const core::Clock& clock = core::system_clock();
  if (!request.run.empty()) {
    auto run = store::find_run(recipe.output_dir, request.run, clock);
    if (!run) throw core::RunError(run.failure().message, run.failure().hint, core::kExitUsage);
    return {std::move(run).value()};
  }
  std::vector<store::RunSummary> runs;
  for (auto& run : store::list_runs(recipe.output_dir, clock)) {
    if (run.name == recipe.run_name && !run.smoke) runs.push_back(std::move(run));
  }
  return runs;
}

FoundCheckpoint named_checkpoint(const resolve::Recipe& recipe, const EvalRequest& request) {
  std::error_code ignored;
  if (fs::is_regular_file(request.checkpoint, ignored)) {
    throw core::RunError(request.checkpoint + " is a file of a checkpoint",
                         "name the checkpoint's folder: " + fs::path(request.checkpoint).parent_path().string(),
                         core::kExitUsage);
  }
  if (fs::exists(request.checkpoint, ignored)) return {.path = request.checkpoint};
  for (store::RunSummary& run : candidate_runs(recipe, request)) {
    store::read_resolved(run);
    const artifact::RunCheckpoints checkpoints = artifact::checkpoints_of(run.run_dir, run.id, run.resolved);
    if (artifact::list_checkpoints(checkpoints.folder).empty()) continue;
    // Uses the newest run with checkpoints; an older one would be a surprise.
    std::vector<std::string> skipped;
    const auto found = artifact::find_checkpoint(checkpoints, request.checkpoint, skipped);
    for (const std::string& line : skipped) core::log_warning("skipped " + line);
    return {.path = found.value(), .run_dir = run.run_dir, .run_id = run.id};
  }
  throw core::RunError("no run of run_name " + recipe.run_name + " in " + recipe.output_dir + " has a checkpoint",
                       "train it first with `roux run`, or give the path of a checkpoint folder", core::kExitUsage);
}

/// The run of a checkpoint that was named by its folder.
void find_run_of(FoundCheckpoint& checkpoint, const artifact::Manifest& manifest, const resolve::Recipe& recipe) {
  const std::string above = fs::absolute(checkpoint.path).lexically_normal().parent_path().parent_path().string();
  const std::string& id = manifest.fields.run_id;
  if (store::is_run_folder(above)) {
    const store::RunSummary run = store::read_run(above);
    // A checkpoint may have been copied into the folder of another run.
    if (id.empty() || run.id == id) {
      checkpoint.run_dir = fs::path(checkpoint.path).lexically_normal().parent_path().parent_path().string();
      checkpoint.run_id = run.id;
      return;
    }
  }
  if (id.empty()) return;
  if (const auto run = store::find_run(recipe.output_dir, id, core::system_clock()); run && run.value().id == id) {
    checkpoint.run_dir = run.value().run_dir;
    checkpoint.run_id = id;
  }
}

bool is_under(const std::string& path, std::string_view section) {
  return path == section || (path.starts_with(section) && (path[section.size()] == '.' || path[section.size()] == '['));
}

bool is_table(const Node& recipe) {
  const Node* type = recipe.at_path("data.train.type");
  return type != nullptr && type->is_string() && type->as_string() == "csv_table";
}

/// Whether the weights mean something else with another value. A training set that is no table lends its type and
/// vocabulary to the others only.
bool matters(const std::string& path, bool table) {
  if (path.ends_with(".memory_format")) return false;  // of memory, not of values
  if (is_under(path, "model") || is_under(path, "loss")) return true;
  if (path.starts_with("adapters"))
    return path.ends_with(".lora_alpha") || path.ends_with(".use_rslora") || path.ends_with(".use_dora");
  if (!is_under(path, "data.train")) return false;
  if (table) return path != "data.train.path";  // compared by content
  return path == "data.train" || path == "data.train.type" || path == "data.train.vocab_size" ||
         path == "data.train.task";
}

/// `mse` of `{type: mse, ...}`
std::string short_text(const std::string& text, const std::optional<Node>& value) {
  constexpr std::size_t kLongest = 60;
  const Node* type = value && value->is_mapping() ? value->find("type") : nullptr;
  if (text.size() > kLongest && type != nullptr && type->is_string()) return "of type " + type->as_string();
  return text;
}

using Files = std::vector<const artifact::DataFile*>;

/// Files by name and size: their folder may be another one.
std::multiset<std::pair<std::string, std::int64_t>> identities(const Files& files) {
  std::multiset<std::pair<std::string, std::int64_t>> names;
  for (const artifact::DataFile* file : files) names.emplace(fs::path(file->path).filename().string(), file->bytes);
  return names;
}

bool is_same_table(const std::string& now, const artifact::DataFile& was) {
  const auto seen = artifact::stat_data_file(was.set, now);
  if (!seen || seen.value().bytes != was.bytes) return false;
  if (seen.value().mtime_ns == was.mtime_ns) return true;
  const auto read = artifact::read_data_file(was.set, now);
  return read && read.value().checksum == was.checksum;
}

/// Whether `split_by: files` chooses the files that the run was trained on. Other ones would make `eval` score those.
bool are_same_files(const std::vector<std::string>& paths, const Files& trained) {
  std::set<std::string> were;
  for (const artifact::DataFile* file : trained) were.insert(file->path);
  if (were == std::set<std::string>(paths.begin(), paths.end())) return true;
  std::vector<artifact::DataFile> present;
  for (const std::string& path : paths) {
    if (auto seen = artifact::stat_data_file("train", path)) present.push_back(std::move(seen).value());
  }
  Files pointers;
  for (const artifact::DataFile& file : present) pointers.push_back(&file);
  return identities(pointers) == identities(trained);
}

void warn_of_changes(const Files& trained) {
  for (const artifact::DataFile* file : trained) {
    if (file->checksum.empty()) continue;
    const auto seen = artifact::stat_data_file(file->set, file->path);
    if (!seen || (seen.value().bytes == file->bytes && seen.value().mtime_ns == file->mtime_ns)) continue;
    if (seen.value().bytes == file->bytes) {
      const auto read = artifact::read_data_file(file->set, file->path);
      if (!read || read.value().checksum == file->checksum) continue;
    }
    core::log_warning(file->path + " has changed since the run trained on it");
  }
}

std::optional<artifact::Provenance> provenance_of(const FoundCheckpoint& checkpoint) {
  if (checkpoint.provenance.empty()) return std::nullopt;
  auto recorded = artifact::read_provenance(checkpoint.provenance);
  if (recorded) return std::move(recorded).value();
  core::log_warning("cannot tell whether the data changed: " + recorded.failure().message);
  return std::nullopt;
}

Files training_files(const artifact::Provenance& provenance) {
  Files files;
  for (const artifact::DataFile& file : provenance.data) {
    if (file.set == "train") files.push_back(&file);
  }
  return files;
}

FoundCheckpoint find_alone(const resolve::Recipe& recipe, const EvalRequest& request) {
  FoundCheckpoint checkpoint = named_checkpoint(recipe, request);
  const artifact::Manifest manifest = artifact::verify_checkpoint(checkpoint.path).value();
  checkpoint.step = manifest.fields.step;
  if (manifest.fields.model_sizes.is_mapping()) checkpoint.model_sizes = manifest.fields.model_sizes;
  if (checkpoint.run_dir.empty()) find_run_of(checkpoint, manifest, recipe);
  if (checkpoint.run_dir.empty()) return checkpoint;
  const std::int64_t branch = manifest.fields.branch;
  checkpoint.recipe = store::branch_file(checkpoint.run_dir, "resolved.json", branch);
  checkpoint.provenance = store::branch_file(checkpoint.run_dir, artifact::kProvenanceFile, branch);
  return checkpoint;
}

}  // namespace

FoundCheckpoint find_checkpoint(const resolve::Recipe& recipe, const EvalRequest& request,
                                distributed::ProcessGroup* ranks) {
  constexpr const char* kSite = "the checkpoint";
  if (ranks == nullptr) return find_alone(recipe, request);
  if (ranks->rank() == 0) {
    FoundCheckpoint found = find_alone(recipe, request);
    std::vector<Node> words;
    for (const std::string* word : {&found.path, &found.run_dir, &found.run_id, &found.recipe, &found.provenance}) {
      words.push_back(Node::string(*word));
    }
    words.insert(words.end(), {Node::integer(found.step), found.model_sizes});
    ranks->from_rank_0(core::to_json(Node::sequence(std::move(words)), -1), kSite);
    return found;
  }
  const Node told = core::parse_json(ranks->from_rank_0("", kSite)).value();
  const auto word = [&told](std::size_t i) { return told.items().at(i).as_string(); };
  return {word(0), word(1), word(2), word(3), word(4), told.items().at(5).as_integer(), told.items().at(6)};
}

bool fits_recorded_recipe(const resolve::Recipe& recipe, const FoundCheckpoint& checkpoint, const EvalRequest& request,
                          core::Diagnostics& diagnostics) {
  if (checkpoint.recipe.empty()) {
    core::log_warning("cannot check that the recipe fits " + checkpoint.path + ": " +
                      (checkpoint.run_dir.empty() ? "its run is not in " + recipe.output_dir
                                                  : checkpoint.run_dir + " has no resolved.json"));
    return true;
  }
  auto recorded = resolve::read_recorded_recipe(checkpoint.run_dir, checkpoint.recipe);
  if (!recorded) {
    diagnostics.error({}, recorded.failure().message, "restore it, to know what the weights are for");
    return false;
  }
  // A size that was left to the data may be written by now.
  Node* const block = recorded.value().find("model");
  for (const Node::Entry& size : checkpoint.model_sizes.entries()) {
    const Node* written = recipe.model.find(size.key);
    if (block != nullptr && block->is_mapping() && written != nullptr && !written->is_null()) {
      block->set(size.key, size.value);
    }
  }
  const bool table = is_table(recipe.root) && is_table(recorded.value());
  const bool is_newest = checkpoint.recipe == store::branch_file(checkpoint.run_dir, "resolved.json");
  const std::string own =
      is_newest ? "`roux " + request.command + " " + checkpoint.run_id + "`"
                : "`roux " + request.command + " " + checkpoint.recipe + " --checkpoint " + checkpoint.path + "`";
  bool fits = true;
  for (const resolve::Change& change : resolve::list_changes(recorded.value(), recipe.root)) {
    if (!matters(change.path, table)) continue;
    if (change.path.starts_with("adapters") && !request.adapters.empty()) continue;  // by its folder
    const std::string before = short_text(change.before_text(), change.before);
    const std::string location = change.before_location.text();
    diagnostics.error(change.after_location,
                      change.path + " is " + short_text(change.after_text(), change.after) +
                          ", but the weights were trained with " + before +
                          (location.empty() ? "" : " (" + location + ")"),
                      "restore the value, or use the recipe of the run: " + own);
    fits = false;
  }
  return fits;
}

resolve::Recipe with_recorded_sizes(const resolve::Recipe& recipe, const FoundCheckpoint& checkpoint) {
  Node sizes = Node::mapping();
  for (const Node::Entry& size : checkpoint.model_sizes.entries()) {
    const Node* open = recipe.model.find(size.key);
    if (open == nullptr || !open->is_null()) continue;
    Node settled = Node::integer(size.value.as_integer(), recipe.model.location());
    settled.add_history({"settled from the data of the run, as its checkpoint says", core::Origin::kSettled});
    sizes.set(size.key, std::move(settled));
  }
  resolve::Recipe whole = recipe;
  if (sizes.entries().empty()) return whole;
  Node part = Node::mapping();
  part.set("model", std::move(sizes));
  whole.take_values(part);
  return whole;
}

bool fits_recorded_table(const resolve::Recipe& recipe, const FoundCheckpoint& checkpoint,
                         core::Diagnostics& diagnostics) {
  const Node* path = recipe.root.at_path("data.train.path");
  if (!is_table(recipe.root) || path == nullptr || !path->is_string()) return true;
  const auto provenance = provenance_of(checkpoint);
  if (!provenance) return true;
  const Files trained = training_files(*provenance);
  std::error_code ignored;
  // A missing file is reported where it is read.
  if (trained.empty() || !fs::exists(path->as_string(), ignored) ||
      is_same_table(path->as_string(), *trained.front())) {
    return true;
  }
  const artifact::DataFile& was = *trained.front();
  diagnostics.error(path->location(),
                    path->as_string() + " is not the table that the run was trained on" +
                        (path->as_string() == was.path ? "" : " (" + was.path + " in " + provenance->folder + ")") +
                        ": other statistics, categories and classes would not fit the weights",
                    "restore it, or name a copy with --set data.train.path=FILE, or train again");
  return false;
}

bool fits_recorded_files(const train::Experiment& experiment, const FoundCheckpoint& checkpoint,
                         core::Diagnostics& diagnostics) {
  const Node& root = experiment.recipe.root;
  if (is_table(root)) return true;
  const auto provenance = provenance_of(checkpoint);
  if (!provenance) return true;
  const Files trained = training_files(*provenance);
  if (trained.empty()) return true;
  const std::vector<std::string> files = experiment.train_data->files();
  const Node* split_by = root.at_path("data.train.split_by");
  if (split_by == nullptr || !split_by->is_string() || split_by->as_string() != "files" ||
      are_same_files(files, trained)) {
    warn_of_changes(trained);
    return true;
  }
  const Node* path = root.at_path("data.train.path");
  diagnostics.error(path != nullptr ? path->location() : core::Location{},
                    "the files of data.train are not those that the run was trained on (" +
                        core::counted_large(static_cast<std::int64_t>(files.size()), "file", "files") + " now, " +
                        core::counted_large(static_cast<std::int64_t>(trained.size()), "file", "files") +
                        " then): with split_by: files, what is held out could have been trained on",
                    "restore the files; if the run is of a roux that split by the path from the current folder, name "
                    "the held-out files as a set without `split`");
  return false;
}

void note_folder(const resolve::Recipe& recipe, const FoundCheckpoint& checkpoint, core::Diagnostics& diagnostics) {
  const auto provenance = provenance_of(checkpoint);
  std::error_code ignored;
  if (!provenance || provenance->folder.empty() || fs::equivalent(provenance->folder, ".", ignored)) return;
  const Node* path = recipe.root.at_path("data.train.path");
  const Node* first = path != nullptr && path->is_sequence() && !path->items().empty() ? &path->items()[0] : path;
  if (first == nullptr || !first->is_string() || fs::path(first->as_string()).is_absolute()) return;
  diagnostics.notice(
      path->location(),
      "the run was started in " + provenance->folder + ", and data.train.path is relative to that folder",
      "start the command there");
}

}  // namespace runner::engine

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "runner/artifact/base_record.h"
#include "runner/artifact/file_check.h"
#include "runner/artifact/io/io.h"
#include "runner/artifact/io/output_draft.h"
#include "runner/artifact/io/output_place.h"
#include "runner/artifact/probe.h"
#include "runner/artifact/safetensors_writer.h"
#include "runner/artifact/tensor_set.h"
#include "runner/cli/commands.h"
#include "runner/core/error.h"
#include "runner/core/platform/files.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
#include "runner/core/units.h"
#include "runner/pretrained/folder_mark.h"
#include "runner/pretrained/folder_writer.h"
#include "runner/review/checkpoint/checkpoints.h"

namespace runner::cli {
namespace {

namespace fs = std::filesystem;

using core::RunError;

constexpr std::int64_t kSpareBytes = 1 << 20;  // the header, the folder's own entry

struct Request {
  std::string source, target;
  bool force = false;
};

struct Merged {
  std::string file;
  std::size_t shards = 0, tensors = 0;
  std::int64_t bytes = 0;
};

/// The set of tensors: a path to one, or the model of a checkpoint.
std::string find_source(const std::string& text, const std::string& runs_dir) {
  std::error_code error;
  std::string path = text;
  if (!fs::exists(text, error)) {
    std::vector<std::string> skipped;
    path = artifact::find_checkpoint(text, review::run_finder(runs_dir), skipped).value();
    for (const std::string& line : skipped)
      std::fprintf(stderr, "skipped %s\n", core::escape_for_terminal(line).c_str());
  }
  std::string set = artifact::find_tensor_set(path).value();
  if (artifact::base_of_checkpoint(fs::path(set).parent_path().string())) {
    throw RunError(path + " holds adapters, and not the model that they were trained for",
                   "`roux export RUN DIR --merge` writes the model with them", core::kExitUsage);
  }
  return set;
}

/// A file if it ends like one, otherwise a file in this folder.
fs::path target_file(const std::string& target) {
  if (target.ends_with(artifact::kSafetensorsEnding)) return target;
  return fs::path(target) / artifact::kModelFile;
}

void refuse_to_overwrite(const fs::path& file, const std::string& source, bool force) {
  std::error_code error;
  if (!fs::exists(fs::symlink_status(file, error))) return;
  const std::vector<std::string> sources = artifact::files_of_set(source).value();
  for (const std::string& one : sources) {
    if (fs::equivalent(one, file, error)) {
      throw RunError(file.string() + " is part of CHECKPOINT", "choose another OUTPUT", core::kExitUsage);
    }
  }
  if (!force) throw RunError(file.string() + " exists", "choose another OUTPUT, or add --force", core::kExitUsage);
}

using Metadata = std::vector<std::pair<std::string, std::string>>;

/// Shards may have different values under one key; a file has one.
Metadata first_of_each(const Metadata& metadata) {
  Metadata kept;
  for (const auto& entry : metadata) {
    const auto same_key = [&entry](const auto& other) { return other.first == entry.first; };
    if (std::none_of(kept.begin(), kept.end(), same_key)) kept.push_back(entry);
  }
  return kept;
}

/// A reader that prefers an index would load its shards instead of the merged file.
void refuse_index_beside(const fs::path& file) {
  const fs::path index = file.string() + artifact::kIndexEnding;
  std::error_code error;
  if (!fs::exists(index, error)) return;
  throw RunError(index.string() + " exists: readers would load its shards instead",
                 "choose another OUTPUT, or remove the index", core::kExitUsage);
}

/// A folder that roux wrote is one thing: a file of another model in it would be read with the rest.
void refuse_in_marked_folder(const std::string& folder) {
  if (!pretrained::read_mark(folder)) return;
  throw RunError(folder + " is a folder that roux wrote as a whole", "name a file elsewhere, or the folder itself",
                 core::kExitUsage);
}

void write_file(const std::string& path, const artifact::SafetensorsReader& reader, const std::string& source,
                const Request& request, std::int64_t bytes) {
  artifact::check_output_place(path).value();
  const core::OutputTarget target = core::output_target(path).value();
  const fs::path file(target.path);
  std::string folder = file.has_parent_path() ? file.parent_path().string() : ".";
  if (target.is_in_place) {
    folder = fs::temp_directory_path().string();  // where OutputDraft writes it
  } else {
    refuse_to_overwrite(file, source, request.force);
    refuse_index_beside(file);
    refuse_in_marked_folder(folder);
  }
  artifact::Io& io = artifact::system_io();
  artifact::make_dirs(io, folder);
  if (const std::int64_t free = artifact::free_bytes_at(folder); free < bytes + kSpareBytes) {
    throw RunError("the merged file needs " + core::format_bytes(bytes) + ", but " + folder + " has " +
                   core::format_bytes(free) + " free");
  }
  artifact::OutputDraft draft(io, path);
  const artifact::FileEntry entry =
      artifact::write_safetensors(io, draft.path(), reader.tensors(), first_of_each(reader.metadata()), {});
  artifact::verify_file(draft.path(), entry).value();
  draft.publish();
}

void write_folder(const artifact::SafetensorsReader& reader, const std::string& source, const Request& request,
                  std::int64_t bytes) {
  std::vector<pretrained::WrittenTensor> tensors;
  for (const artifact::TensorBytes& tensor : reader.tensors()) tensors.push_back({tensor});
  pretrained::FolderWriter folder({request.target, request.force, bytes, {source}});
  folder.write_tensors(artifact::kModelFile, tensors, first_of_each(reader.metadata()));
  folder.finish();
}

Merged merge(const Request& request, const std::string& runs_dir) {
  const std::string source = find_source(request.source, runs_dir);
  const bool is_file = request.target.ends_with(artifact::kSafetensorsEnding);
  artifact::verify_tensor_set(source).value();
  const auto reader = artifact::open_tensors(source).value();
  Merged merged{target_file(request.target).string()};
  merged.shards = artifact::files_of_set(source).value().size() - (source.ends_with(artifact::kIndexEnding) ? 1 : 0);
  merged.tensors = reader->tensors().size();
  for (const artifact::TensorBytes& tensor : reader->tensors()) merged.bytes += tensor.bytes;
  if (is_file) {
    write_file(merged.file, *reader, source, request, merged.bytes);
  } else {
    write_folder(*reader, source, request, merged.bytes);
  }
  return merged;
}

/// Formats of other programs, by the endings of their files.
bool is_of_other_format(const std::string& path) {
  static constexpr std::array<const char*, 5> kEndings = {".bin", ".pt", ".pth", ".ckpt", ".gguf"};
  const std::string ending = core::lower(fs::path(path).extension().string());
  return std::find(kEndings.begin(), kEndings.end(), ending) != kEndings.end();
}

void run(const Request& request, Session& session) {
  if (is_of_other_format(request.source)) {
    return session.fail("merge-weights reads safetensors only, got " + core::escape_for_terminal(request.source),
                        "convert it first: safetensors.torch.save_file(torch.load(FILE), \"model.safetensors\")");
  }
  std::error_code error;
  if (is_of_other_format(request.target) && !fs::is_directory(request.target, error)) {
    return session.fail("merge-weights writes safetensors only, got " + core::escape_for_terminal(request.target),
                        "name a file that ends in .safetensors, or a folder");
  }
  const auto merged = artifact::attempt([&] { return merge(request, session.runs_dir()); });
  if (!merged) return session.fail(merged.failure().message, merged.failure().hint, merged.failure().exit_code);
  const Merged& done = merged.value();
  std::printf("merged %zu %s into %s: %zu tensors, %s\n", done.shards, done.shards == 1 ? "file" : "files",
              core::escape_for_terminal(done.file).c_str(), done.tensors, core::format_bytes(done.bytes).c_str());
}

}  // namespace

void add_merge_weights(Command app, Session& session) {
  const auto request = std::make_shared<Request>();
  Command command = app.add_subcommand("merge-weights", "Merge the shards of a model into one file");
  command
      .add_option("CHECKPOINT", request->source,
                  "Checkpoint (folder, RUN:best, RUN:last, RUN:step-000500), folder of shards, or index")
      .required();
  command.add_option("OUTPUT", request->target, "File that ends in .safetensors, or folder for model.safetensors")
      .required();
  command.add_flag("--force", request->force, "Replace the file OUTPUT, or a folder that roux wrote");
  command.footer(
      "\nTensors keep their names, types and bits. A checkpoint is verified against its manifest first.\n"
      "\nExamples:\n"
      "  roux merge-weights tiny-gpt:best tiny-gpt.safetensors\n"
      "  roux merge-weights runs/tiny-gpt-1a2b/checkpoints/step-000500 exported\n");
  command.callback([request, &session] { session.command = [request, &session] { run(*request, session); }; });
}

}  // namespace runner::cli

#include "runner/pretrained/folder_writer.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "runner/artifact/io/output_place.h"
#include "runner/artifact/probe.h"
#include "runner/artifact/safetensors_writer.h"
#include "runner/artifact/shards.h"
#include "runner/artifact/tensor_set.h"
#include "runner/core/error.h"
#include "runner/core/units.h"

namespace runner::pretrained {
namespace {

namespace fs = std::filesystem;

using core::RunError;

constexpr std::int64_t kSpareBytes = 1 << 20;
constexpr std::array kTokenizerFiles = {"tokenizer.json",
                                        "tokenizer_config.json",
                                        "special_tokens_map.json",
                                        "added_tokens.json",
                                        "vocab.json",
                                        "merges.txt",
                                        "tokenizer.model",
                                        "spiece.model",
                                        "vocab.txt",
                                        "chat_template.jinja"};

constexpr std::array kReadTokenizers = {"tokenizer.json", "vocab.json", "tokenizer.model"};

/// Those of processes of this machine that were killed.
void remove_old_drafts(const fs::path& folder, const std::string& prefix) {
  std::error_code failed;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, failed)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(prefix)) continue;
    pid_t process = 0;
    const char* const end = name.data() + name.size();
    const auto read = std::from_chars(name.data() + prefix.size(), end, process);
    const bool is_gone =
        read.ec == std::errc() && read.ptr == end && process > 0 && ::kill(process, 0) != 0 && errno == ESRCH;
    if (is_gone) fs::remove_all(entry.path(), failed);
  }
}

bool is_model_file(const std::string& name) {
  return name.starts_with("model") &&
         (name.ends_with(artifact::kSafetensorsEnding) || name.ends_with(artifact::kIndexEnding));
}

}  // namespace

FolderWriter::FolderWriter(const Options& options) { open(options); }

FolderWriter::~FolderWriter() {
  std::error_code failed;
  if (!draft_.empty()) fs::remove_all(draft_, failed);
}

void FolderWriter::open(const Options& options) {
  artifact::check_output_folder(options.folder).value();
  std::error_code failed;
  if (fs::exists(options.folder, failed)) {
    if (!fs::is_directory(options.folder, failed)) {
      throw RunError(options.folder + " is not a folder", "choose another DIR", core::kExitUsage);
    }
    if (!fs::is_empty(options.folder, failed) && !options.force) {
      throw RunError(options.folder + " exists and is not empty", "choose another DIR, or add --force",
                     core::kExitUsage);
    }
  }
  const fs::path whole = fs::weakly_canonical(fs::absolute(options.folder));  // `link/..` is where the link leads
  const fs::path target = whole.has_filename() ? whole : whole.parent_path();
  artifact::make_dirs(io_, target.parent_path().string());
  if (const std::int64_t free = artifact::free_bytes_at(target.parent_path().string());
      free < options.bytes + kSpareBytes) {
    throw RunError("the model needs " + core::format_bytes(options.bytes) + ", but " + target.parent_path().string() +
                   " has " + core::format_bytes(free) + " free");
  }
  target_ = target.string();
  const std::string prefix = "." + target.filename().string() + ".";
  remove_old_drafts(target.parent_path(), prefix);
  draft_ = (target.parent_path() / (prefix + std::to_string(::getpid()))).string();
  io_.make_dir(draft_);
}

std::string FolderWriter::drafted(const std::string& name) {
  const std::string below = fs::path(name).parent_path().string();
  if (!below.empty() && folders_.insert(below).second) io_.make_dir((fs::path(draft_) / below).string());
  return (fs::path(draft_) / name).string();
}

void FolderWriter::write_text(const std::string& name, const std::string& text) {
  const std::string path = drafted(name);
  const int handle = io_.create(path);
  io_.write(handle, path, text.data(), static_cast<std::int64_t>(text.size()));
  io_.sync_file(handle, path);
  io_.close(handle, path);
  files_.push_back(name);
}

void FolderWriter::write_tensors(const std::string& name, const std::vector<WrittenTensor>& tensors) {
  std::vector<artifact::TensorBytes> of_file;
  std::map<std::string, const WrittenTensor*> by_name;
  for (const WrittenTensor& tensor : tensors) {
    of_file.push_back(tensor.bytes);
    by_name.emplace(tensor.bytes.name, &tensor);
  }
  artifact::write_safetensors(io_, drafted(name), std::move(of_file), {{"format", "pt"}}, {},
                              [&](const std::string& tensor) { return by_name.at(tensor)->make(); });
  files_.push_back(name);
}

void FolderWriter::write_model(const std::vector<WrittenTensor>& tensors, std::int64_t shard_bytes_max) {
  std::vector<std::pair<std::string, std::int64_t>> sizes;
  for (const WrittenTensor& tensor : tensors) sizes.emplace_back(tensor.bytes.name, tensor.bytes.bytes);
  const artifact::ShardPlan plan = artifact::plan_shards(sizes, shard_bytes_max);
  for (const artifact::ShardPlan::File& file : plan.files) {
    std::vector<WrittenTensor> of_file;
    for (const std::size_t i : file.tensors) of_file.push_back(tensors[i]);
    write_tensors(file.name, of_file);
  }
  if (!plan.index.empty()) write_text(std::string(artifact::kModelFile) + artifact::kIndexEnding, plan.index);
  wrote_model_ = true;
}

bool FolderWriter::copy(const std::string& folder, const std::string& name) {
  std::error_code failed;
  const fs::path from = fs::path(folder) / name, to = fs::path(draft_) / name;
  if (!fs::is_regular_file(from, failed)) return false;
  if (!fs::copy_file(from, to, failed)) throw RunError("cannot copy " + from.string() + ": " + failed.message());
  files_.push_back(name);
  return true;
}

std::vector<std::string> FolderWriter::copy_tokenizer(const std::string& folder) {
  std::vector<std::string> copied;
  for (const char* name : kTokenizerFiles) {
    if (copy(folder, name)) copied.emplace_back(name);
  }
  return copied;
}

bool FolderWriter::has(const std::string& name) const {
  return std::find(files_.begin(), files_.end(), name) != files_.end();
}

std::vector<std::string> FolderWriter::finish() {
  std::error_code failed;
  for (const std::string& below : folders_) io_.sync_dir((fs::path(draft_) / below).string());
  io_.sync_dir(draft_);
  if (!fs::exists(target_, failed) || fs::is_empty(target_, failed)) {
    fs::remove(target_, failed);
    io_.rename(draft_, target_);
  } else {
    // Weights of another cut would be read beside the new ones.
    for (const fs::directory_entry& entry : fs::directory_iterator(target_)) {
      if (wrote_model_ && is_model_file(entry.path().filename().string())) io_.remove_file(entry.path().string());
    }
    for (const std::string& below : folders_) artifact::make_dirs(io_, (fs::path(target_) / below).string());
    for (const std::string& name : files_) {
      io_.rename((fs::path(draft_) / name).string(), (fs::path(target_) / name).string());
    }
    for (const std::string& below : folders_) io_.remove_dir((fs::path(draft_) / below).string());
    io_.remove_dir(draft_);
  }
  draft_.clear();
  io_.sync_dir(fs::path(target_).parent_path().string());
  std::sort(files_.begin(), files_.end());
  return std::move(files_);
}

bool has_tokenizer(const std::string& folder) {
  std::error_code failed;
  return std::any_of(std::begin(kReadTokenizers), std::end(kReadTokenizers),
                     [&](const char* file) { return fs::is_regular_file(fs::path(folder) / file, failed); });
}

}  // namespace runner::pretrained

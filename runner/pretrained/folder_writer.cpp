#include "runner/pretrained/folder_writer.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <map>
#include <string_view>
#include <system_error>

#include "runner/artifact/draft_names.h"
#include "runner/artifact/file_writer.h"
#include "runner/artifact/io/mapped_file.h"
#include "runner/artifact/io/output_place.h"
#include "runner/artifact/probe.h"
#include "runner/artifact/safetensors_writer.h"
#include "runner/artifact/shards.h"
#include "runner/artifact/tensor_set.h"
#include "runner/core/error.h"
#include "runner/core/log.h"
#include "runner/core/platform/files.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
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

constexpr std::array kReadTokenizers = {"tokenizer.json", "vocab.json", "tokenizer.model", "vocab.txt"};

constexpr std::string_view kDraft = ".roux-";  // then the process, and a number where that name is taken
constexpr const char* kNewMark = ".roux.json.new";
constexpr std::size_t kNamesShown = 5;

std::string mark_of(const std::string& folder) { return (fs::path(folder) / kMarkFile).string(); }

/// The process of a draft's name, `.NAME.roux-PROCESS` or `.NAME.roux-PROCESS-NUMBER`; 0 for any other name.
std::int64_t process_of(const std::string& name, const std::string& target) {
  const std::string start = "." + target + std::string(kDraft);
  if (!name.starts_with(start)) return 0;
  const std::string_view digits = std::string_view(name).substr(start.size());
  const std::string_view process = digits.substr(0, digits.find('-'));
  const std::string_view number = process.size() == digits.size() ? "1" : digits.substr(process.size() + 1);
  pid_t value = 0;
  const auto [end, error] = std::from_chars(process.data(), process.data() + process.size(), value);
  const bool is_number = !number.empty() && number.find_first_not_of("0123456789") == std::string_view::npos;
  return error == std::errc() && end == process.data() + process.size() && is_number ? value : 0;
}

bool is_within(const fs::path& path, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first == folder.end();
}

bool is_mount_point(const std::string& folder) {
  struct statx status {};
  if (::statx(AT_FDCWD, folder.c_str(), 0, STATX_BASIC_STATS, &status) != 0) return false;
  if ((status.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) != 0) {
    return (status.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
  }
  struct stat here {
  }, above{};
  return ::stat(folder.c_str(), &here) == 0 && ::stat((folder + "/..").c_str(), &above) == 0 &&
         here.st_dev != above.st_dev;
}

std::string free_name(const std::string& name) {
  std::error_code failed;
  std::string free = name;
  for (int number = 1; fs::exists(fs::symlink_status(free, failed)); ++number) {
    free = name + "-" + std::to_string(number);
  }
  return free;
}

/// Of names, some are said.
std::string named(std::vector<std::string> names) {
  for (std::string& name : names) name = core::escape_for_terminal(name);
  return core::joined_first(names, kNamesShown);
}

/// The mark of a folder that may be replaced; nothing for one that is empty or not there. RunError for any other.
std::optional<FolderMark> replaceable(const std::string& folder, const std::string& target, bool by_content) {
  std::error_code failed;
  if (!fs::exists(target, failed) || fs::is_empty(target, failed)) return std::nullopt;
  std::optional<FolderMark> mark = read_mark(target);
  if (!mark || mark->is_draft) {
    const std::vector<std::string> names = core::list_folder(target).value();
    throw RunError(folder + " holds files, and no mark of roux says that it wrote them: " + named(names),
                   "choose another DIR, or remove the folder yourself", core::kExitUsage);
  }
  const std::vector<std::string> foreign = foreign_to(*mark, target, by_content);
  if (foreign.empty()) return mark;
  throw RunError(folder + " holds files that are not as roux wrote them: " + named(foreign),
                 "choose another DIR, or move them away", core::kExitUsage);
}

}  // namespace

/// Holds the lock of a mark's file until the end of the process, however that comes.
class FolderWriter::Lock {
 public:
  /// Nothing is held where another process has it, or the file system has no locks.
  explicit Lock(const std::string& path) : file_(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)) {
    is_held_ = file_ >= 0 && ::flock(file_, LOCK_EX | LOCK_NB) == 0;
  }
  ~Lock() {
    if (file_ >= 0) ::close(file_);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  bool is_held() const { return is_held_; }

 private:
  int file_;
  bool is_held_ = false;
};

FolderWriter::FolderWriter(const Options& options, artifact::Io& io) : io_(io) {
  artifact::check_output_folder(options.folder).value();
  std::error_code failed;
  const fs::file_status itself = fs::symlink_status(options.folder, failed);
  if (fs::exists(itself) && !fs::is_directory(options.folder, failed)) {
    const bool leads_nowhere = fs::is_symlink(itself) && !fs::exists(options.folder, failed);
    throw RunError(options.folder + (leads_nowhere ? " is a link to a folder that does not exist" : " is not a folder"),
                   "choose another DIR", core::kExitUsage);
  }
  const fs::path whole = fs::weakly_canonical(fs::absolute(options.folder));  // `link/..` is where the link leads
  target_ = (whole.has_filename() ? whole : whole.parent_path()).string();
  check_place(options);
  check_content(options);
  const std::string parent = fs::path(target_).parent_path().string();
  artifact::make_dirs(io_, parent);
  if (const std::int64_t free = artifact::free_bytes_at(parent); free < options.bytes + kSpareBytes) {
    throw RunError("the model needs " + core::format_bytes(options.bytes) + ", but " + parent + " has " +
                   core::format_bytes(free) + " free");
  }
  try {
    make_draft();
  } catch (const RunError&) {
    remove_draft();
    throw;
  }
}

FolderWriter::~FolderWriter() { remove_draft(); }

void FolderWriter::remove_draft() {
  if (draft_.empty()) return;
  try {
    artifact::remove_tree(io_, draft_);
  } catch (...) {
    // The cause of the cleanup is already being reported; the next export removes it.
  }
  draft_.clear();
}

/// Folders that no name can be exchanged with, or that are needed where they are.
void FolderWriter::check_place(const Options& options) const {
  const auto refuse = [&](const std::string& what) {
    throw RunError(options.folder + what, "choose another DIR", core::kExitUsage);
  };
  std::error_code failed;
  if (!fs::path(target_).has_relative_path()) refuse(" is the root folder");
  const fs::path here = fs::canonical(fs::current_path(failed), failed);
  if (here == target_) refuse(" is the current folder");
  if (!here.empty() && is_within(here, target_)) refuse(" holds the current folder");
  if (is_mount_point(target_)) refuse(" is a mount point");
  for (const std::string& source : options.sources) {
    if (source.empty()) continue;
    const fs::path place = fs::weakly_canonical(fs::absolute(source), failed);
    if (is_within(place, target_)) refuse(" holds what is read: " + core::escape_for_terminal(source));
  }
}

/// A folder of others is named before --force is offered.
void FolderWriter::check_content(const Options& options) {
  replaced_ = replaceable(options.folder, target_, /*by_content=*/options.force);
  if (!replaced_ || options.force) return;
  throw RunError(options.folder + " exists and is not empty", "choose another DIR, or add --force", core::kExitUsage);
}

/// Also removes what earlier processes that were killed left of this folder.
void FolderWriter::make_draft() {
  const fs::path target(target_);
  const std::string name = target.filename().string();
  const std::vector<std::string> beside = core::list_folder(target.parent_path().string()).value();
  for (const std::string& one : beside) {
    const std::int64_t process = process_of(one, name);
    if (process == 0) continue;
    try {
      remove_leftover((target.parent_path() / one).string(), process);
    } catch (const RunError&) {
      // It takes room, and does not hinder.
    }
  }
  draft_ = free_name((target.parent_path() / ("." + name + std::string(kDraft) + std::to_string(::getpid()))).string());
  io_.make_dir(draft_);
  write_mark(true);
}

/// The mark's lock tells of a process at work, on any machine. Before there is a mark the folder holds no file.
void FolderWriter::remove_leftover(const std::string& folder, std::int64_t process) {
  std::error_code failed;
  if (!fs::is_directory(fs::symlink_status(folder, failed))) return;
  const std::optional<FolderMark> mark = read_mark(folder);
  if (!mark) {
    const bool is_gone = process == ::getpid() || !artifact::is_process_alive(process);
    const std::vector<std::string> names = core::list_folder(folder).value();
    const bool holds_none = names.empty() || names == std::vector<std::string>{kNewMark};
    if (is_gone && holds_none) artifact::remove_tree(io_, folder);
    return;
  }
  if (!Lock(mark_of(folder)).is_held()) return;
  if (mark->is_draft) {
    artifact::remove_tree(io_, folder);
  } else if (foreign_to(*mark, folder, false).empty()) {
    remove_marked(io_, *mark, folder);
  }
}

void FolderWriter::write_mark(bool is_draft) {
  std::sort(files_.begin(), files_.end(), [](const auto& one, const auto& other) { return one.name < other.name; });
  const std::string text = mark_text({is_draft, files_});
  const std::string path = (fs::path(draft_) / kNewMark).string();
  const int handle = io_.create(path);
  io_.write(handle, path, text.data(), static_cast<std::int64_t>(text.size()));
  io_.sync_file(handle, path);
  io_.close(handle, path);
  auto lock = std::make_unique<Lock>(path);  // before it has its name
  io_.rename(path, mark_of(draft_));
  lock_ = std::move(lock);
}

std::string FolderWriter::drafted(const std::string& name) {
  const std::string below = fs::path(name).parent_path().string();
  if (!below.empty() && folders_.insert(below).second) io_.make_dir((fs::path(draft_) / below).string());
  return (fs::path(draft_) / name).string();
}

void FolderWriter::write_text(const std::string& name, const std::string& text) {
  artifact::FileWriter file(io_, drafted(name), {static_cast<std::int64_t>(text.size())});
  file.append(text.data(), static_cast<std::int64_t>(text.size()));
  files_.push_back(file.finish(name));
}

void FolderWriter::write_tensors(const std::string& name, const std::vector<WrittenTensor>& tensors,
                                 const std::vector<std::pair<std::string, std::string>>& metadata) {
  std::vector<artifact::TensorBytes> of_file;
  std::map<std::string, const WrittenTensor*> by_name;
  for (const WrittenTensor& tensor : tensors) {
    of_file.push_back(tensor.bytes);
    by_name.emplace(tensor.bytes.name, &tensor);
  }
  artifact::FileEntry entry =
      artifact::write_safetensors(io_, drafted(name), std::move(of_file), metadata, {},
                                  [&](const std::string& tensor) { return by_name.at(tensor)->make(); });
  entry.name = name;
  files_.push_back(std::move(entry));
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
}

bool FolderWriter::copy(const std::string& folder, const std::string& name) {
  std::error_code failed;
  const fs::path from = fs::path(folder) / name;
  if (!fs::is_regular_file(from, failed)) return false;
  const artifact::MappedFile content(from.string(), "file of a model");
  const std::string_view bytes = content.bytes();
  artifact::FileWriter file(io_, drafted(name), {static_cast<std::int64_t>(bytes.size())});
  file.append(bytes.data(), static_cast<std::int64_t>(bytes.size()));
  files_.push_back(file.finish(name));
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
  return std::any_of(files_.begin(), files_.end(), [&](const artifact::FileEntry& file) { return file.name == name; });
}

std::vector<std::string> FolderWriter::finish() {
  write_mark(false);
  for (const std::string& below : folders_) io_.sync_dir((fs::path(draft_) / below).string());
  io_.sync_dir(draft_);
  if (replaced_) {
    replace();
  } else {
    io_.rename(draft_, target_);  // of an empty folder, too
    draft_.clear();
    io_.sync_dir(fs::path(target_).parent_path().string());
  }
  lock_.reset();
  std::vector<std::string> names;
  for (const artifact::FileEntry& file : files_) names.push_back(file.name);
  return names;
}

/// The old folder has another name from here on; of that only what its mark lists is removed.
void FolderWriter::replace() {
  const std::string parent = fs::path(target_).parent_path().string();
  std::error_code failed;
  fs::permissions(draft_, fs::status(target_, failed).permissions(), failed);
  std::string old = draft_;
  if (!io_.exchange(draft_, target_)) {
    old = free_name(target_ + ".replaced");
    core::log_warning("the file system cannot exchange folders: what was in " + target_ + " is " + old +
                      " until the new folder has its name");
    io_.rename(target_, old);
    try {
      io_.rename(draft_, target_);
    } catch (const RunError&) {
      io_.rename(old, target_);
      throw;
    }
  }
  draft_.clear();
  io_.sync_dir(parent);
  try {
    remove_marked(io_, read_mark(old).value_or(*replaced_), old);
  } catch (const RunError& error) {
    return core::log_warning("what was in " + target_ + " is in " + old + ": " + error.what());
  }
  if (fs::exists(old, failed)) core::log_warning("files that came to " + target_ + " meanwhile are in " + old);
}

core::Result<void> check_replaceable(const std::string& folder) {
  return artifact::attempt([&] { (void)replaceable(folder, folder, /*by_content=*/false); });
}

bool has_tokenizer(const std::string& folder) {
  std::error_code failed;
  return std::any_of(std::begin(kReadTokenizers), std::end(kReadTokenizers),
                     [&](const char* file) { return fs::is_regular_file(fs::path(folder) / file, failed); });
}

}  // namespace runner::pretrained

#include "runner/pretrained/folder_mark.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>

#include "runner/artifact/file_check.h"
#include "runner/core/json.h"
#include "runner/core/platform/files.h"

namespace runner::pretrained {
namespace {

namespace fs = std::filesystem;

using core::Node;

constexpr const char* kFormat = "roux folder";
constexpr std::int64_t kVersion = 1;
constexpr std::int64_t kMarkBytesMax = 4 << 20;

bool is_folder(const std::string& path) {
  std::error_code failed;
  return fs::is_directory(fs::symlink_status(path, failed));
}

/// Of a file below the folder, as its listing would give it.
bool is_name_below(const std::string& name) {
  const fs::path path(name);
  return path.has_filename() && path.is_relative() && path.lexically_normal() == path && *path.begin() != "..";
}

/// The folders in which the files of a mark lie, below its own.
std::set<std::string> folders_of(const FolderMark& mark) {
  std::set<std::string> folders;
  for (const artifact::FileEntry& file : mark.files) {
    for (fs::path folder = fs::path(file.name).parent_path(); !folder.empty(); folder = folder.parent_path()) {
      folders.insert(folder.string());
    }
  }
  return folders;
}

/// Names of files below a folder, as a mark has them, and of folders that are not in `known`.
void list_below(const std::string& folder, const std::string& prefix, const std::set<std::string>& known,
                std::vector<std::string>& names) {
  const std::vector<std::string> there = core::list_folder(folder + "/" + prefix).value();
  for (const std::string& name : there) {
    const std::string below = prefix + name;
    if (!is_folder(folder + "/" + below)) {
      names.push_back(below);
    } else if (known.contains(below)) {
      list_below(folder, below + "/", known, names);
    } else {
      names.push_back(below + "/");
    }
  }
}

}  // namespace

std::string mark_text(const FolderMark& mark) {
  Node files = Node::mapping();
  for (const artifact::FileEntry& file : mark.files) {
    Node entry = Node::mapping();
    entry.set("bytes", Node::integer(file.bytes));
    entry.set("checksum", Node::string(file.checksum));
    files.set(file.name, std::move(entry));
  }
  Node node = Node::mapping();
  node.set("format", Node::string(kFormat));
  node.set("version", Node::integer(kVersion));
  if (mark.is_draft) node.set("draft", Node::boolean(true));
  node.set("files", std::move(files));
  return core::to_json(node) + "\n";
}

std::optional<FolderMark> read_mark(const std::string& folder) {
  const auto text = core::read_file((fs::path(folder) / kMarkFile).string(), kMarkBytesMax);
  if (!text) return std::nullopt;
  const auto node = core::parse_json(text.value());
  if (!node || !node.value().is_mapping()) return std::nullopt;
  const Node* format = node.value().find("format");
  const Node* version = node.value().find("version");
  const Node* files = node.value().find("files");
  if (format == nullptr || !format->is_string() || format->as_string() != kFormat) return std::nullopt;
  if (version == nullptr || !version->is_integer() || version->as_integer() != kVersion) return std::nullopt;
  if (files == nullptr || !files->is_mapping()) return std::nullopt;
  FolderMark mark;
  const Node* draft = node.value().find("draft");
  mark.is_draft = draft != nullptr && draft->is_bool() && draft->as_bool();
  for (const Node::Entry& file : files->entries()) {
    const Node* bytes = file.value.is_mapping() ? file.value.find("bytes") : nullptr;
    const Node* checksum = file.value.is_mapping() ? file.value.find("checksum") : nullptr;
    if (bytes == nullptr || !bytes->is_integer() || checksum == nullptr || !checksum->is_string()) return std::nullopt;
    if (!is_name_below(file.key)) return std::nullopt;
    mark.files.push_back({file.key, bytes->as_integer(), checksum->as_string()});
  }
  return mark;
}

std::vector<std::string> foreign_to(const FolderMark& mark, const std::string& folder, bool by_content) {
  std::map<std::string, const artifact::FileEntry*> listed;
  for (const artifact::FileEntry& file : mark.files) listed.emplace(file.name, &file);
  std::vector<std::string> there, foreign;
  list_below(folder, "", folders_of(mark), there);
  for (const std::string& name : there) {
    if (name == kMarkFile) continue;
    const auto found = listed.find(name);
    std::error_code failed;
    const std::string path = (fs::path(folder) / name).string();
    const bool is_listed = found != listed.end() && fs::is_regular_file(fs::symlink_status(path, failed));
    if (!is_listed || (by_content && !artifact::verify_file(path, *found->second))) foreign.push_back(name);
  }
  std::sort(foreign.begin(), foreign.end());
  return foreign;
}

void remove_marked(artifact::Io& io, const FolderMark& mark, const std::string& folder) {
  const std::vector<std::string> left = foreign_to(mark, folder, false);
  std::vector<std::string> there;
  const std::set<std::string> folders = folders_of(mark);
  list_below(folder, "", folders, there);
  for (const std::string& name : there) {
    if (name == kMarkFile || std::binary_search(left.begin(), left.end(), name)) continue;
    io.remove_file((fs::path(folder) / name).string());
  }
  std::error_code failed;
  for (auto below = folders.rbegin(); below != folders.rend(); ++below) {  // the deepest first
    const std::string path = (fs::path(folder) / *below).string();
    if (is_folder(path) && fs::is_empty(path, failed)) io.remove_dir(path);
  }
  io.remove_file((fs::path(folder) / kMarkFile).string());
  if (fs::is_empty(folder, failed)) io.remove_dir(folder);
}

}  // namespace runner::pretrained

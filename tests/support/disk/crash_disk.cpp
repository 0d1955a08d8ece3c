#include "tests/support/disk/crash_disk.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace tests {
namespace {

namespace fs = std::filesystem;

using Kind = DiskEvent::Kind;

constexpr std::size_t kSectorBytes = 512;  // what a disk writes whole or not at all

std::string read_all(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

}  // namespace

CrashDisk::CrashDisk(const std::string& folder) : root_(folder) { load(folder); }

int CrashDisk::make(bool is_folder) {
  nodes_.emplace_back().is_folder = is_folder;
  return static_cast<int>(nodes_.size()) - 1;
}

int CrashDisk::load(const std::string& path) {
  const int node = make(fs::is_directory(path));
  if (!nodes_[static_cast<std::size_t>(node)].is_folder) {
    nodes_[static_cast<std::size_t>(node)].durable = read_all(path);
    return node;
  }
  std::map<std::string, int> entries;
  for (const auto& entry : fs::directory_iterator(path)) {
    entries[entry.path().filename().string()] = load(entry.path().string());
  }
  nodes_[static_cast<std::size_t>(node)].entries = entries;
  nodes_[static_cast<std::size_t>(node)].durable_entries = std::move(entries);
  return node;
}

std::optional<int> CrashDisk::node_at(const std::string& path) const {
  int node = 0;
  for (const fs::path& part : fs::path(path).lexically_relative(root_)) {
    if (part == ".") continue;
    const auto& entries = nodes_[static_cast<std::size_t>(node)].entries;
    const auto found = entries.find(part.string());
    if (found == entries.end()) return std::nullopt;
    node = found->second;
  }
  return node;
}

std::pair<int, std::string> CrashDisk::slot_of(const std::string& path) const {
  const auto folder = node_at(fs::path(path).parent_path().string());
  if (!folder) throw std::runtime_error("the simulated disk has no folder for " + path);
  return {*folder, fs::path(path).filename().string()};
}

void CrashDisk::set(std::map<std::string, int>& entries, const Slot& slot) {
  if (slot.node < 0) {
    entries.erase(slot.name);
  } else {
    entries[slot.name] = slot.node;
  }
}

void CrashDisk::change(FolderChange change) {
  for (const Slot& slot : change) set(nodes_[static_cast<std::size_t>(slot.folder)].entries, slot);
  pending_.push_back(std::move(change));
}

void CrashDisk::apply(const DiskEvent& event) {
  switch (event.kind) {
    case Kind::kMark: return;
    case Kind::kMakeDir:
    case Kind::kCreate: {
      const auto [folder, name] = slot_of(event.path);
      return change({{folder, name, make(event.kind == Kind::kMakeDir)}});
    }
    case Kind::kUnlink:
    case Kind::kRemoveDir: {
      const auto [folder, name] = slot_of(event.path);
      return change({{folder, name, -1}});
    }
    case Kind::kRename:
    case Kind::kExchange: {
      const auto [folder, name] = slot_of(event.path);
      const auto [other_folder, other_name] = slot_of(event.other);
      const int node = node_at(event.path).value();
      const int other = event.kind == Kind::kExchange ? node_at(event.other).value() : -1;
      return change({{folder, name, other}, {other_folder, other_name, node}});
    }
    case Kind::kSyncAll:
      for (std::size_t node = 0; node < nodes_.size(); ++node) sync(static_cast<int>(node));
      return;
    case Kind::kWrite:
    case Kind::kTruncate:
    case Kind::kExtend:
    case Kind::kSync: return change_file(event);
  }
}

void CrashDisk::change_file(const DiskEvent& event) {
  // A file that was deleted while open has no path any more, and nothing that is written to it comes back.
  const auto node = node_at(event.path);
  if (!node) return;
  if (event.kind == Kind::kSync) return sync(*node);
  const auto kind = event.kind == Kind::kWrite      ? FileChange::Kind::kWrite
                    : event.kind == Kind::kTruncate ? FileChange::Kind::kTruncate
                                                    : FileChange::Kind::kExtend;
  nodes_[static_cast<std::size_t>(*node)].pending.push_back({kind, event.offset, event.data});
}

void CrashDisk::sync(int at) {
  Node& node = nodes_[static_cast<std::size_t>(at)];
  if (node.is_folder) return sync_folder(at);
  for (const FileChange& change : node.pending) write(node.durable, change, change.data.size());
  node.pending.clear();
}

void CrashDisk::sync_folder(int folder) {
  std::vector<FolderChange> left;
  for (FolderChange& change : pending_) {
    const auto here = [&](const Slot& slot) { return slot.folder == folder; };
    if (std::none_of(change.begin(), change.end(), here)) {
      left.push_back(std::move(change));
      continue;
    }
    for (const Slot& slot : change) set(nodes_[static_cast<std::size_t>(slot.folder)].durable_entries, slot);
  }
  pending_ = std::move(left);
}

/// The first `bytes` of the change.
void CrashDisk::write(std::string& content, const FileChange& change, std::size_t bytes) {
  const auto offset = static_cast<std::size_t>(change.offset);
  switch (change.kind) {
    case FileChange::Kind::kTruncate: content.resize(offset, '\0'); return;
    case FileChange::Kind::kExtend: content.resize(std::max(content.size(), offset), '\0'); return;
    case FileChange::Kind::kWrite:
      content.resize(std::max(content.size(), offset + bytes), '\0');
      content.replace(offset, bytes, change.data, 0, bytes);
      return;
  }
}

std::string CrashDisk::content_of(const Node& node, Unsynced unsynced, std::mt19937& random) const {
  std::string content = node.durable;
  if (unsynced == Unsynced::kNone) return content;
  for (const FileChange& change : node.pending) {
    std::size_t bytes = change.data.size();
    if (unsynced == Unsynced::kRandom) {
      const int dice = std::uniform_int_distribution<int>(0, 3)(random);
      if (dice == 0) continue;
      if (dice == 1) bytes = std::min(bytes, kSectorBytes * (random() % (bytes / kSectorBytes + 1)));
    }
    write(content, change, bytes);
  }
  return content;
}

void CrashDisk::after_power_loss(Unsynced unsynced, std::mt19937& random, const std::string& target) const {
  std::vector<std::map<std::string, int>> entries;
  for (const Node& node : nodes_) entries.push_back(node.durable_entries);
  std::set<std::pair<int, std::string>> held;  // a change of theirs is missing, so no later one can be there
  for (const FolderChange& change : pending_) {
    const auto waits = [&](const Slot& slot) { return held.contains({slot.folder, slot.name}); };
    const bool there = unsynced != Unsynced::kNone && std::none_of(change.begin(), change.end(), waits) &&
                       (unsynced == Unsynced::kAll || random() % 2 == 0);
    for (const Slot& slot : change) {
      if (there) {
        set(entries[static_cast<std::size_t>(slot.folder)], slot);
      } else {
        held.insert({slot.folder, slot.name});
      }
    }
  }
  materialise(0, entries, unsynced, random, target);
}

void CrashDisk::materialise(int folder, const std::vector<std::map<std::string, int>>& entries, Unsynced unsynced,
                            std::mt19937& random, const std::string& target) const {
  for (const auto& [name, at] : entries[static_cast<std::size_t>(folder)]) {
    const Node& node = nodes_[static_cast<std::size_t>(at)];
    const std::string path = target + "/" + name;
    if (node.is_folder) {
      fs::create_directory(path);
      materialise(at, entries, unsynced, random, path);
    } else {
      std::ofstream(path, std::ios::binary) << content_of(node, unsynced, random);
    }
  }
}

}  // namespace tests

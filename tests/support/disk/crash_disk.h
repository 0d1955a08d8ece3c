#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/support/disk/tracer.h"

namespace tests {

/// What a machine finds on its disk after it lost power: only what was synced is sure to be there. Of the rest, each
/// write may be there, in part or not at all, and each change of a folder may be there or not, in any order that keeps
/// changes of one and the same name in theirs. This is weaker than what any real file system promises.
class CrashDisk {
 public:
  /// The folder as it is now, all of it on the disk.
  explicit CrashDisk(const std::string& folder);

  /// Takes part in what a traced program did below the folder.
  void apply(const DiskEvent& event);

  /// How much of what is not sure is there.
  enum class Unsynced { kNone, kAll, kRandom };
  /// Writes what the machine finds into `target`, an empty folder.
  void after_power_loss(Unsynced unsynced, std::mt19937& random, const std::string& target) const;

 private:
  struct FileChange {
    enum class Kind { kWrite, kTruncate, kExtend } kind;
    std::int64_t offset;
    std::string data;
  };
  /// A file or a folder, whatever its names.
  struct Node {
    bool is_folder = false;
    std::string durable;                 ///< content of a file
    std::vector<FileChange> pending;     ///< of a file, oldest first
    std::map<std::string, int> entries;  ///< of a folder, as the program sees it: name -> node
    std::map<std::string, int> durable_entries;
  };
  /// An entry of a folder gets another node, or none (-1).
  struct Slot {
    int folder;
    std::string name;
    int node;
  };
  using FolderChange = std::vector<Slot>;  ///< all of it or nothing

  int load(const std::string& path);
  int make(bool is_folder);
  std::pair<int, std::string> slot_of(const std::string& path) const;
  std::optional<int> node_at(const std::string& path) const;
  void change(FolderChange change);
  void change_file(const DiskEvent& event);
  void sync(int node);
  void sync_folder(int folder);
  static void set(std::map<std::string, int>& entries, const Slot& slot);
  static void write(std::string& content, const FileChange& change, std::size_t bytes);
  std::string content_of(const Node& node, Unsynced unsynced, std::mt19937& random) const;
  void materialise(int folder, const std::vector<std::map<std::string, int>>& entries, Unsynced unsynced,
                   std::mt19937& random, const std::string& target) const;

  std::string root_;
  std::vector<Node> nodes_;  ///< 0 is the root
  std::vector<FolderChange> pending_;
};

}  // namespace tests

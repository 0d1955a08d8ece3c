#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "runner/artifact/io/io.h"

namespace tests {

/// The process dies here. No RunError, so that nothing on the way can take it for an answer.
struct Crash {};

/// A disk in a real folder on which the k-th call fails, or is the last one the process makes. It keeps account of what
/// has not been made durable, so that lose_power() can take it away again, as a machine without current would.
class FaultyIo final : public runner::artifact::Io {
 public:
  enum class Fault { kNone, kCrashBefore, kCrashAfter, kDiskError };
  /// `stash` is a folder elsewhere: deleted files wait there until their deletion is durable.
  FaultyIo(std::string stash, Fault fault, int at_call);

  void make_dir(const std::string& path) override;
  int create(const std::string& path) override;
  void write(int handle, const std::string& path, const void* data, std::int64_t bytes) override;
  void allocate(int handle, const std::string& path, std::int64_t bytes) override;
  void start_writeback(int, std::int64_t, std::int64_t) override {}
  void sync_file(int handle, const std::string& path) override;
  void close(int handle, const std::string& path) override;
  void sync_dir(const std::string& path) override;
  void rename(const std::string& from, const std::string& to) override;
  bool exchange(const std::string& one, const std::string& other) override;
  void remove_file(const std::string& path) override;
  void remove_dir(const std::string& path) override;

  bool can_exchange = true;
  int calls() const { return calls_; }
  bool injected() const { return injected_; }

  /// What was not durable is torn (contents of files, at random) or undone (the newest `entries` changes to folders).
  void lose_power(std::mt19937& random, int entries);

 private:
  struct Entry {
    enum class Kind { kMakeDir, kCreate, kRename, kExchange, kRemoveFile, kRemoveDir } kind;
    std::string path, other;  ///< other: where it was, or its partner, or where the stash holds it
  };

  template <typename Effect>
  void call(const std::string& path, Effect effect);
  void moved(const std::string& from, const std::string& to);
  void exchanged(const std::string& one, const std::string& other);
  void undo(const Entry& entry);

  std::string stash_;
  Fault fault_;
  int at_call_;
  int calls_ = 0;
  int stashed_ = 0;
  bool injected_ = false;
  std::vector<Entry> pending_;                         ///< entries of folders, oldest first
  std::map<std::string, std::int64_t> volatile_from_;  ///< file -> bytes that are durable
};

}  // namespace tests

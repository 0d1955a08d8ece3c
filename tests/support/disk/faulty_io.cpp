#include "tests/support/disk/faulty_io.h"

#include <filesystem>
#include <system_error>
#include <utility>

namespace tests {
namespace {

namespace fs = std::filesystem;

std::string parent(const std::string& path) { return fs::path(path).parent_path().string(); }

/// `path` after `from` became `to`.
std::string followed(const std::string& path, const std::string& from, const std::string& to) {
  if (path == from) return to;
  return path.starts_with(from + "/") ? to + path.substr(from.size()) : path;
}

std::string swapped(const std::string& path, const std::string& one, const std::string& other) {
  const std::string there = followed(path, one, other);
  return there != path ? there : followed(path, other, one);
}

void tear(const std::string& path, std::int64_t durable, std::mt19937& random) {
  std::error_code error;
  const auto size = static_cast<std::int64_t>(fs::file_size(path, error));
  if (error || size <= durable) return;
  fs::resize_file(path, static_cast<std::uintmax_t>(
                            durable + std::uniform_int_distribution<std::int64_t>(0, size - durable)(random)));
}

}  // namespace

FaultyIo::FaultyIo(std::string stash, Fault fault, int at_call)
    : stash_(std::move(stash)), fault_(fault), at_call_(at_call) {}

template <typename Effect>
void FaultyIo::call(const std::string& path, Effect effect) {
  if (injected_ && fault_ != Fault::kDiskError) throw Crash{};
  const bool now = ++calls_ == at_call_ && fault_ != Fault::kNone;
  injected_ = injected_ || now;
  if (now && fault_ == Fault::kDiskError) runner::artifact::throw_disk_error("cannot write", path, ENOSPC);
  if (now && fault_ == Fault::kCrashBefore) throw Crash{};
  effect();
  if (now) throw Crash{};
}

void FaultyIo::make_dir(const std::string& path) {
  call(path, [&] {
    Io::make_dir(path);
    pending_.push_back({Entry::Kind::kMakeDir, path, ""});
  });
}

int FaultyIo::create(const std::string& path) {
  int handle = -1;
  call(path, [&] {
    handle = Io::create(path);
    pending_.push_back({Entry::Kind::kCreate, path, ""});
    volatile_from_[path] = 0;
    if (injected_ && fault_ == Fault::kCrashAfter) Io::close(handle, path);
  });
  return handle;
}

void FaultyIo::write(int handle, const std::string& path, const void* data, std::int64_t bytes) {
  call(path, [&] { Io::write(handle, path, data, bytes); });
}

void FaultyIo::allocate(int handle, const std::string& path, std::int64_t bytes) {
  call(path, [&] { Io::allocate(handle, path, bytes); });
}

void FaultyIo::sync_file(int, const std::string& path) {
  call(path, [&] { volatile_from_.erase(path); });
}

void FaultyIo::close(int handle, const std::string& path) {
  // Dying after it is the same as dying before the next call; the handle itself must not leak in this process.
  Io::close(handle, path);
  call(path, [] {});
}

void FaultyIo::sync_dir(const std::string& path) {
  call(path, [&] { std::erase_if(pending_, [&](const Entry& entry) { return parent(entry.path) == path; }); });
}

void FaultyIo::moved(const std::string& from, const std::string& to) {
  for (Entry& entry : pending_) {
    entry.path = followed(entry.path, from, to);
    entry.other = followed(entry.other, from, to);
  }
  std::map<std::string, std::int64_t> files;
  for (const auto& [path, durable] : volatile_from_) files[followed(path, from, to)] = durable;
  volatile_from_ = std::move(files);
}

void FaultyIo::exchanged(const std::string& one, const std::string& other) {
  for (Entry& entry : pending_) {
    entry.path = swapped(entry.path, one, other);
    entry.other = swapped(entry.other, one, other);
  }
  std::map<std::string, std::int64_t> files;
  for (const auto& [path, durable] : volatile_from_) files[swapped(path, one, other)] = durable;
  volatile_from_ = std::move(files);
}

void FaultyIo::rename(const std::string& from, const std::string& to) {
  call(to, [&] {
    Io::rename(from, to);
    moved(from, to);
    pending_.push_back({Entry::Kind::kRename, to, from});
  });
}

bool FaultyIo::exchange(const std::string& one, const std::string& other) {
  if (!can_exchange) return false;
  call(other, [&] {
    Io::exchange(one, other);
    exchanged(one, other);
    pending_.push_back({Entry::Kind::kExchange, other, one});
  });
  return true;
}

void FaultyIo::remove_file(const std::string& path) {
  call(path, [&] {
    const std::string kept = stash_ + "/" + std::to_string(stashed_++);
    fs::rename(path, kept);
    pending_.push_back({Entry::Kind::kRemoveFile, path, kept});
  });
}

void FaultyIo::remove_dir(const std::string& path) {
  call(path, [&] {
    Io::remove_dir(path);
    pending_.push_back({Entry::Kind::kRemoveDir, path, ""});
  });
}

void FaultyIo::undo(const Entry& entry) {
  std::error_code ignored;  // what lay in a folder that is gone is gone with it
  switch (entry.kind) {
    case Entry::Kind::kMakeDir: fs::remove_all(entry.path, ignored); break;
    case Entry::Kind::kCreate: fs::remove(entry.path, ignored); break;
    case Entry::Kind::kRename:
      fs::rename(entry.path, entry.other, ignored);
      moved(entry.path, entry.other);
      break;
    case Entry::Kind::kExchange:
      Io::exchange(entry.path, entry.other);
      exchanged(entry.path, entry.other);
      break;
    case Entry::Kind::kRemoveFile: fs::rename(entry.other, entry.path, ignored); break;
    case Entry::Kind::kRemoveDir: fs::create_directory(entry.path, ignored); break;
  }
}

void FaultyIo::lose_power(std::mt19937& random, int entries) {
  for (const auto& [path, durable] : volatile_from_) tear(path, durable, random);
  for (; entries > 0 && !pending_.empty(); --entries) {
    const Entry entry = pending_.back();
    pending_.pop_back();
    undo(entry);
  }
}

}  // namespace tests

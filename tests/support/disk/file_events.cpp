#include "tests/support/disk/file_events.h"

#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <system_error>

namespace tests {
namespace {

constexpr int kQuietMs = 60'000;

}  // namespace

FileEvents::FileEvents(const std::filesystem::path& folder) : descriptor_(inotify_init1(IN_CLOEXEC)) {
  REQUIRE(descriptor_ >= 0);
  watch(folder);
}

FileEvents::~FileEvents() { close(descriptor_); }

/// The folder and those in it, some of which may be gone again before they are looked at.
void FileEvents::watch(const std::filesystem::path& folder) {
  const int id = inotify_add_watch(descriptor_, folder.c_str(), IN_CREATE | IN_MODIFY | IN_MOVED_TO | IN_ONLYDIR);
  if (id < 0) return;
  folders_[id] = folder;
  std::error_code gone;
  for (std::filesystem::directory_iterator entry(folder, gone), end; !gone && entry != end; entry.increment(gone)) {
    if (entry->is_directory(gone)) watch(entry->path());
  }
}

bool FileEvents::wait_for(int count) {
  alignas(inotify_event) std::array<char, 64 << 10> bytes{};
  while (seen_ < count) {
    pollfd waiting = {descriptor_, POLLIN, 0};
    if (poll(&waiting, 1, kQuietMs) <= 0) return false;
    const ssize_t size = read(descriptor_, bytes.data(), bytes.size());
    for (ssize_t at = 0; at < size;) {
      const auto* event = reinterpret_cast<const inotify_event*>(bytes.data() + at);
      if ((event->mask & IN_ISDIR) != 0 && event->len > 0) watch(folders_[event->wd] / event->name);
      at += static_cast<ssize_t>(sizeof(inotify_event)) + event->len;
      ++seen_;
    }
  }
  return true;
}

}  // namespace tests

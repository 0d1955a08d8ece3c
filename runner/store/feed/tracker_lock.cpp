#include "runner/store/feed/tracker_lock.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "runner/core/platform/files.h"

namespace runner::store {
namespace {

constexpr std::size_t kHolderBytesMax = 20;  // a process's number

/// The file stays when the lock is given back: deleting it would let two processes lock two files of one name.
core::Failure held(int descriptor) {
  std::array<char, kHolderBytesMax> text{};
  const ssize_t size = pread(descriptor, text.data(), text.size(), 0);
  const std::string holder(text.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  return {(holder.empty() ? "another process" : "process " + holder) + " is already syncing this run to it",
          "wait for it to end, it syncs everything; one started by a running training continues until the run ends"};
}

}  // namespace

core::Result<std::unique_ptr<TrackerLock>> TrackerLock::take(const std::string& run_dir, const std::string& tracker) {
  const std::string path = run_dir + "/.sync-" + tracker + ".lock";
  if (auto fits = core::check_is_file(path); !fits) return fits.failure();
  const int descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor < 0) return core::Failure{"cannot write " + path + ": " + std::strerror(errno), ""};
  std::unique_ptr<TrackerLock> lock(new TrackerLock(descriptor));
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  const bool taken = fcntl(descriptor, F_OFD_SETLK, &whole) == 0;
  if (!taken && (errno == EAGAIN || errno == EACCES)) return held(descriptor);
  // Sync even if the file system has no locks, or the disk is too full for the number.
  const std::string number = std::to_string(getpid());
  if (ftruncate(descriptor, 0) == 0 && pwrite(descriptor, number.data(), number.size(), 0) < 0) errno = 0;
  return lock;
}

TrackerLock::~TrackerLock() { close(descriptor_); }

}  // namespace runner::store

#include "trackers/io/record_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "runner/core/log.h"
#include "runner/core/platform/files.h"
#include "trackers/io/tracker_data.h"

namespace trackers {
namespace {

constexpr std::size_t kIdBytesMax = 40;

TrackerError refused(const std::string& path, const char* what) {
  const int error = errno;
  const bool passes = error == ENOSPC || error == EDQUOT || error == EINTR || error == EIO;
  return {passes ? TrackerError::Remedy::kRetry : TrackerError::Remedy::kPause,
          std::string("cannot ") + what + " " + path + ": " + std::strerror(error)};
}

}  // namespace

RecordFile::RecordFile(const std::string& path, std::int64_t keep_bytes) : path_(path) {
  if (const auto folder = std::filesystem::path(path).parent_path(); !folder.empty()) {
    const auto made = runner::core::make_folders(folder.string());
    if (!made) throw TrackerError(TrackerError::Remedy::kPause, made.failure().message, made.failure().hint);
  }
  descriptor_ = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor_ < 0) throw refused(path, "open");
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  if (fcntl(descriptor_, F_OFD_SETLK, &whole) != 0 && (errno == EAGAIN || errno == EACCES)) {
    close(descriptor_);
    throw TrackerError(TrackerError::Remedy::kPause, path + " is being written by another process",
                       "give each run its own path");
  }
  struct stat info {};
  if (fstat(descriptor_, &info) != 0) throw refused(path, "look at");
  bytes_ = std::min<std::int64_t>(keep_bytes, info.st_size);
  if (info.st_size != bytes_ && ftruncate(descriptor_, bytes_) != 0) throw refused(path, "cut back");
}

RecordFile::~RecordFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

void RecordFile::flush(bool durable) {
  std::size_t done = 0;
  while (done < buffer_.size()) {
    const ssize_t written = ::write(descriptor_, buffer_.data() + done, buffer_.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const TrackerError error = refused(path_, "write");
      // No torn record for a reader, and all of it for the next attempt.
      if (ftruncate(descriptor_, bytes_) != 0) throw refused(path_, "cut back");
      throw error;
    }
    done += static_cast<std::size_t>(written);
  }
  bytes_ += static_cast<std::int64_t>(buffer_.size());
  buffer_.clear();
  if (durable && fsync(descriptor_) != 0) throw refused(path_, "sync");
}

void claim_file(const std::string& path, const Ownership& owner, std::int64_t keep_bytes) {
  std::ifstream file(path, std::ios::binary);
  std::string there(owner.before.size() + kIdBytesMax + owner.after.size(), '\0');
  file.read(there.data(), static_cast<std::streamsize>(there.size()));
  there.resize(static_cast<std::size_t>(file.gcount()));
  const std::string own = owner.before + owner.id + owner.after;
  // Shorter if a crash tore the first record, or interrupted rewriting the file.
  if (own.starts_with(there) || there.starts_with(own)) return;
  if (keep_bytes > 0) {
    throw TrackerError(TrackerError::Remedy::kPause, path + " belongs to another run now",
                       "use another path, or move that file away");
  }
  const std::size_t end = there.find(owner.after, owner.before.size());
  const std::string other = there.starts_with(owner.before) && end != std::string::npos
                                ? there.substr(owner.before.size(), end - owner.before.size())
                                : "";
  const bool is_id =
      !other.empty() && std::all_of(other.begin(), other.end(), [](unsigned char c) { return std::isalnum(c) != 0; });
  const std::string aside = path + "." + other;
  if (!is_id || std::filesystem::exists(aside)) {
    throw TrackerError(TrackerError::Remedy::kPause, path + " has content that roux did not write",
                       "use another path, or move that file away");
  }
  std::filesystem::rename(path, aside);
  runner::core::log_warning(path + " belonged to run " + other + " and was moved to " + aside);
}

}  // namespace trackers

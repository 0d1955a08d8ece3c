#include "runner/artifact/io/output_draft.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <vector>

namespace runner::artifact {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kCopyBytes = std::size_t{1} << 20;

/// A name that nothing has, for a file of this process.
std::string free_name(const std::string& start) {
  std::error_code failed;
  std::string name = start + ".part-" + std::to_string(::getpid());
  const std::string first = name;
  for (int number = 1; fs::exists(fs::symlink_status(name, failed)); ++number) {
    name = first + "-" + std::to_string(number);
  }
  return name;
}

}  // namespace

OutputDraft::OutputDraft(Io& io, const std::string& path) : io_(io), target_(core::output_target(path).value()) {
  // A device's folder is no place for a file.
  draft_ = free_name(target_.is_in_place ? (fs::temp_directory_path() / "roux").string() : target_.path);
}

OutputDraft::~OutputDraft() {
  std::error_code failed;
  if (!draft_.empty()) fs::remove(draft_, failed);
}

void OutputDraft::publish() {
  if (target_.is_in_place) {
    copy_in_place();
    io_.remove_file(draft_);
  } else {
    io_.rename(draft_, target_.path);
    const std::string folder = fs::path(target_.path).parent_path().string();
    io_.sync_dir(folder.empty() ? "." : folder);
  }
  draft_.clear();
}

void OutputDraft::copy_in_place() const {
  const int to = core::open_in_place(target_).value();
  const int from = ::open(draft_.c_str(), O_RDONLY | O_CLOEXEC);
  int error = from < 0 ? errno : 0;
  std::vector<char> part(kCopyBytes);
  while (error == 0) {
    const ssize_t got = ::read(from, part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) error = errno;
    if (got <= 0) break;
    for (ssize_t done = 0; done < got && error == 0;) {
      const ssize_t written = ::write(to, part.data() + done, static_cast<std::size_t>(got - done));
      if (written >= 0) {
        done += written;
      } else if (errno != EINTR) {
        error = errno;
      }
    }
  }
  if (from >= 0) ::close(from);
  if (::close(to) != 0 && error == 0) error = errno;
  if (error != 0) throw_disk_error("cannot write", target_.path, error);
}

}  // namespace runner::artifact

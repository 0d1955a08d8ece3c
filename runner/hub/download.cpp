#include "runner/hub/download.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "runner/core/platform/files.h"
#include "runner/core/text/utf8.h"
#include "runner/core/units.h"
#include "runner/hub/file_lock.h"
#include "runner/net/digest.h"

namespace runner::hub {
namespace {

namespace fs = std::filesystem;

using net::HttpAnswer;

constexpr std::size_t kReadBytes = 1U << 20;
constexpr std::int64_t kProgress = 1 << 20;  // bytes after which a lost connection counts as the first
constexpr int kWholeTries = 2;               // the second one from nothing

/// What was received is not what was described; the next try begins from nothing. The message goes into
/// RemoteFile::damaged().
class Mismatch : public core::RunError {
 public:
  using RunError::RunError;
};

[[noreturn]] void cannot_write(const std::string& path, const std::string& variable, int error) {
  const bool is_full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  const std::string reason = error == ENOSPC   ? "the disk is full"
                             : error == EDQUOT ? "the quota of its disk is used up"
                             : error == EFBIG  ? "`ulimit -f` allows no file of this size"
                                               : std::strerror(error);
  throw core::RunError("cannot write " + core::escape_for_terminal(path) + ": " + reason,
                       is_full ? "make room, or set " + variable +
                                     " to a folder on a larger disk; the part that is there is kept, and the same "
                                     "command resumes"
                               : "set " + variable + " to a folder that can be written",
                       is_full ? core::kExitResumable : core::kExitFailed);
}

/// The beginning of a blob, open for appending.
class Incomplete {
 public:
  Incomplete(std::string path, std::string variable) : path_(std::move(path)), variable_(std::move(variable)) {
    descriptor_ = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    struct stat info = {};
    if (descriptor_ < 0 || fstat(descriptor_, &info) != 0) cannot_write(path_, variable_, errno);
    bytes_ = info.st_size;
  }
  ~Incomplete() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  Incomplete(const Incomplete&) = delete;
  Incomplete& operator=(const Incomplete&) = delete;

  std::int64_t bytes() const { return bytes_; }

  void clear() {
    if (ftruncate(descriptor_, 0) != 0) cannot_write(path_, variable_, errno);
    bytes_ = 0;
  }

  void append(std::string_view piece) {
    while (!piece.empty()) {
      const ssize_t got = pwrite(descriptor_, piece.data(), piece.size(), bytes_);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) cannot_write(path_, variable_, errno);
      bytes_ += got;
      piece.remove_prefix(static_cast<std::size_t>(got));
    }
  }

  void read_all(const std::function<void(std::string_view)>& take) const {
    std::vector<char> buffer(kReadBytes);
    for (std::int64_t at = 0; at < bytes_;) {
      const ssize_t got = pread(descriptor_, buffer.data(), buffer.size(), at);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) {
        throw core::RunError("cannot read " + core::escape_for_terminal(path_) + ": " +
                             (got < 0 ? std::strerror(errno) : "it became shorter"));
      }
      take({buffer.data(), static_cast<std::size_t>(got)});
      at += got;
    }
  }

  /// fsync and rename; the folder's fsync too, where the file system has it.
  void move_to(const std::string& path) {
    if (fsync(descriptor_) != 0) cannot_write(path_, variable_, errno);
    if (close(std::exchange(descriptor_, -1)) != 0) cannot_write(path_, variable_, errno);
    if (rename(path_.c_str(), path.c_str()) != 0) cannot_write(path, variable_, errno);
    const int folder = open(fs::path(path).parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return;
    fsync(folder);
    close(folder);
  }

 private:
  std::string path_, variable_;
  int descriptor_ = -1;
  std::int64_t bytes_ = 0;
};

bool is_hex(const std::string& text, std::size_t digits) {
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

/// Compares what was received with the ETag: SHA-256, or git's SHA-1 of a blob; other ETags say nothing of the content.
void check(const Incomplete& file, const RemoteFile& wanted) {
  const std::string& etag = wanted.info().etag;
  const bool is_large = is_hex(etag, 64);
  if (!is_large && !is_hex(etag, 40)) return;
  net::Digest digest(is_large ? net::Digest::Kind::kSha256 : net::Digest::Kind::kSha1);
  if (!is_large) digest.add("blob " + std::to_string(file.bytes()) + std::string(1, '\0'));
  file.read_all([&digest](std::string_view piece) { digest.add(piece); });
  const std::string got = digest.hex();
  if (got == etag) return;
  throw Mismatch(std::string("its ") + (is_large ? "SHA-256" : "SHA-1") + " is " + got + " instead of " + etag);
}

/// -1: the system does not say.
std::int64_t free_bytes_of(const std::string& folder) {
  std::error_code failed;
  const auto space = fs::space(folder, failed);
  return failed ? -1 : static_cast<std::int64_t>(space.available);
}

class Transfer {
 public:
  Transfer(RemoteFile& wanted, const Cache& cache, const DownloadWatch& watch, Incomplete& file)
      : wanted_(wanted), cache_(cache), watch_(watch), file_(file), bytes_(wanted.info().bytes) {}

  /// Receives what is not there yet, over several connections if need be.
  void run() {
    if (is_too_long()) file_.clear();
    for (int attempt = 0; !is_whole();) {
      const std::int64_t before = file_.bytes();
      std::optional<double> pause;
      std::string problem;
      try {
        const HttpAnswer answer = wanted_.get({.from = before}, receiver());
        if (answer.ok()) return check_size();
        if (answer.status == 416) {  // not a part of the file that is there now, or already all of it
          if (!knows_size() && before > 0 && content_range(answer).total == before) return;
          throw wrong_size();
        }
        if (!is_temporary(answer.status)) throw wanted_.refusal(answer);
        problem = wanted_.host() + " answers " + std::to_string(answer.status);
        pause = pause_before(attempt, &answer);
        if (!pause || attempt + 1 >= Client::kAttemptsMax) throw wanted_.refusal(answer);
      } catch (const net::NoResponse& error) {
        if (file_.bytes() - before >= kProgress) attempt = 0;
        problem = error.reason();
        pause = pause_before(attempt, nullptr);
        if (!error.passes() || attempt + 1 >= Client::kAttemptsMax) throw wanted_.unreachable(error);
      }
      ++attempt;
      if (watch_.notes) watch_.notes("downloading " + wanted_.name() + " was interrupted (" + problem + "); resuming");
      watch_.wait(*pause);
    }
  }

 private:
  bool knows_size() const { return bytes_ >= 0; }
  bool is_too_long() const { return knows_size() && file_.bytes() > bytes_; }
  bool is_whole() const { return knows_size() && file_.bytes() == bytes_; }

  Mismatch wrong_size() const {
    return Mismatch("it has " + std::to_string(file_.bytes()) + " bytes" +
                    (knows_size() ? " instead of " + std::to_string(bytes_) : ", and the server has another part"));
  }

  void check_size() const {
    if (knows_size() && !is_whole()) throw wrong_size();
  }

  RemoteFile::Receive receiver() {
    return [this, began = false](const HttpAnswer& answer, std::string_view piece) mutable {
      if (!began) begin(answer);
      began = true;
      file_.append(piece);
      if (is_too_long()) throw wrong_size();
      if (!knows_size() && bytes_max_ >= 0 && file_.bytes() > bytes_max_) give_up_endless();
      if (watch_.at) watch_.at(file_.bytes());
    };
  }

  /// A server that knows no ranges sends the whole file again; one that sends another range is not to be trusted.
  void begin(const HttpAnswer& answer) {
    if (answer.status == 200 && file_.bytes() > 0) file_.clear();
    if (answer.status == 206 && content_range(answer).begin != file_.bytes()) throw wrong_size();
    if (knows_size()) return;
    bytes_ = whole_bytes(answer);
    if (knows_size() && watch_.sized) watch_.sized(bytes_, file_.bytes());
    if (knows_size() || bytes_max_ >= 0) return;
    const std::int64_t left = watch_.free_bytes ? watch_.free_bytes(cache_.folder()) : free_bytes_of(cache_.folder());
    if (left >= 0) bytes_max_ = file_.bytes() + left / 2;
  }

  /// What has come of it may be the beginning of what never ends: it does not stay.
  [[noreturn]] void give_up_endless() {
    file_.clear();
    throw HubError(wanted_.title() + " has more than " + core::format_bytes(bytes_max_) +
                       ", half of what the disk of " + core::escape_for_terminal(cache_.folder()) + " had left, and " +
                       wanted_.host() + " does not say its size",
                   "download the file by other means, and name its path; or set " + std::string(cache_.variable()) +
                       " to a folder on a larger disk");
  }

  RemoteFile& wanted_;
  const Cache& cache_;
  const DownloadWatch& watch_;
  Incomplete& file_;
  std::int64_t bytes_;           ///< of the whole file; -1: the server has not said it yet
  std::int64_t bytes_max_ = -1;  ///< that may come of one whose size is not known; -1: nothing has come yet
};

/// Thrown through the exchange, which ends by it: what arrives is not what was asked for.
struct NotWanted {};

std::int64_t size_of(const std::string& path) {
  std::error_code failed;
  const auto bytes = fs::file_size(path, failed);
  return failed ? -1 : static_cast<std::int64_t>(bytes);
}

bool has_blob(const Cache& cache, const FileInfo& info) {
  const std::int64_t bytes = size_of(cache.blob(info.etag));
  return bytes >= 0 && (info.bytes < 0 || bytes == info.bytes);
}

}  // namespace

std::int64_t bytes_present(const Cache& cache, const FileInfo& info) {
  if (has_blob(cache, info)) return size_of(cache.blob(info.etag));
  return std::max<std::int64_t>(size_of(cache.blob(info.etag) + ".incomplete"), 0);
}

std::optional<FilePart> read_part(RemoteFile& file, std::int64_t from, std::int64_t count) {
  FilePart part;
  const auto take = [&](const HttpAnswer& answer, std::string_view piece) {
    const ContentRange range = content_range(answer);
    if (answer.status != 206 || range.begin != from || range.total < from + count) throw NotWanted();
    part.whole_bytes = range.total;
    part.content += piece;
    if (part.content.size() > static_cast<std::size_t>(count)) throw NotWanted();
  };
  try {
    const HttpAnswer answer = file.get({.from = from, .count = count}, take);
    if (!answer.ok() && answer.status != 416) throw file.refusal(answer);
  } catch (const NotWanted&) {
    return std::nullopt;
  }
  if (part.content.size() != static_cast<std::size_t>(count)) return std::nullopt;
  return part;
}

std::optional<std::string> read_whole(RemoteFile& file, std::size_t bytes_max) {
  std::string content;
  const auto take = [&](const HttpAnswer&, std::string_view piece) {
    if (content.size() + piece.size() > bytes_max) throw NotWanted();
    content += piece;
  };
  try {
    const HttpAnswer answer = file.get({}, take);
    if (!answer.ok()) throw file.refusal(answer);
  } catch (const NotWanted&) {
    return std::nullopt;
  }
  return content;
}

void check_space(const Cache& cache, const std::string& what, std::int64_t missing) {
  if (missing <= 0) return;
  core::make_folders(cache.folder()).value();
  const std::int64_t left = free_bytes_of(cache.folder());
  if (left < 0 || left >= missing) return;
  throw core::RunError(what + " needs " + core::format_bytes(missing) + " more, and the disk of " +
                           core::escape_for_terminal(cache.folder()) + " has " + core::format_bytes(left) + " left",
                       "make room, or set " + std::string(cache.variable()) + " to a folder on a larger disk",
                       core::kExitResumable);
}

void download(RemoteFile& wanted, const Cache& cache, const DownloadWatch& watch) {
  const std::string blob = cache.blob(wanted.info().etag);
  if (has_blob(cache, wanted.info())) return;
  core::make_folders(fs::path(blob).parent_path().string()).value();
  const FileLock lock(
      cache.lock(wanted.info().etag), watch.wait,
      [&] {
        if (watch.notes) watch.notes("another process downloads " + wanted.name() + "; waiting for it");
      },
      cache.variable());
  if (has_blob(cache, wanted.info())) return;
  Incomplete file(blob + ".incomplete", cache.variable());
  const bool is_worth_another = file.bytes() > 0 || !wanted.is_intact_in_transit();
  for (int tries = 1;; ++tries) {
    try {
      Transfer(wanted, cache, watch, file).run();
      check(file, wanted);
      break;
    } catch (const Mismatch& mismatch) {
      file.clear();
      const HubError damaged = wanted.damaged(mismatch.what());
      if (tries >= kWholeTries || !is_worth_another) throw damaged;
      if (watch.notes) watch.notes(std::string(damaged.what()) + "; downloading it again");
    }
  }
  file.move_to(blob);
}

HubFile::HubFile(Client& client, const Name& name, std::string commit, const std::string& file, FileInfo info)
    : RemoteFile(file, std::move(info)), client_(client), repository_(name), commit_(std::move(commit)) {}

std::string HubFile::host() const { return client_.settings().host(); }

std::string HubFile::title() const { return core::quote(name()) + " of " + repository_.text(commit_); }

HttpAnswer HubFile::get(const Range& range, const Receive& receive) {
  return client_.get(repository_, commit_, name(), range, receive);
}

HubError HubFile::refusal(const HttpAnswer& answer) const { return client_.refusal(repository_, answer); }

HubError HubFile::unreachable(const net::NoResponse& error) const { return client_.unreachable(error); }

HubError HubFile::damaged(const std::string& what) const {
  return {title() + " arrived damaged: " + what, "try again; check the proxy if it happens again"};
}

}  // namespace runner::hub

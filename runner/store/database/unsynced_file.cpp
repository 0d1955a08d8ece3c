#include "runner/store/database/unsynced_file.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "runner/store/database/sqlite.h"

namespace runner::store {
namespace {

[[noreturn]] void refuse(const std::string& path, const std::string& beside) {
  const int error = errno;
  unlink(beside.c_str());
  const int code = error == ENOSPC || error == EDQUOT ? SQLITE_FULL
                   : error == EFBIG                   ? SqliteError::kSizeLimit
                                                      : SQLITE_IOERR_WRITE;
  throw SqliteError(path, code, std::strerror(error));
}

}  // namespace

void write_unsynced(const std::string& path, const std::string& content) {
  const std::string beside = path + ".new";  // of a file that has one writer
  const int file = open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) refuse(path, beside);
  for (std::size_t written = 0; written < content.size();) {
    const ssize_t got = write(file, content.data() + written, content.size() - written);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      const int error = errno;
      close(file);
      errno = error;
      refuse(path, beside);
    }
    written += static_cast<std::size_t>(got);
  }
  if (close(file) != 0 || std::rename(beside.c_str(), path.c_str()) != 0) refuse(path, beside);
}

}  // namespace runner::store

#include "components/data/mapped_file.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <mutex>

#include "runner/core/error.h"

namespace components::data {
namespace {

// Jump target for a fault of this thread; a signal handler has no other way to find it.
thread_local sigjmp_buf* landing = nullptr;
struct sigaction previous;

void on_bus_error(int) {
  if (landing != nullptr) siglongjmp(*landing, 1);
  sigaction(SIGBUS, &previous, nullptr);  // not ours: the access is retried with the default action
}

void watch_bus_errors() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action = {};
    action.sa_handler = on_bus_error;
    action.sa_flags = SA_NODEFER;  // the jump leaves the handler without unblocking the signal
    sigaction(SIGBUS, &action, &previous);
  });
}

runner::core::RunError cannot_read(const std::string& path) {
  return runner::core::RunError("cannot read \"" + path + "\": " + std::strerror(errno));
}

}  // namespace

namespace mapped {

bool run_guarded(void (*work)(void*), void* context) {
  sigjmp_buf here;
  if (sigsetjmp(here, 0) != 0) {
    landing = nullptr;
    return false;
  }
  landing = &here;
  work(context);
  landing = nullptr;
  return true;
}

}  // namespace mapped

MappedFile::MappedFile(const std::string& path) : path_(path) {
  watch_bus_errors();
  descriptor_ = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0) throw cannot_read(path);
  struct stat status {};
  void* memory = nullptr;
  if (fstat(descriptor_, &status) == 0 && status.st_size > 0) {
    memory = mmap(nullptr, static_cast<std::size_t>(status.st_size), PROT_READ, MAP_SHARED, descriptor_, 0);
  }
  if (memory == MAP_FAILED || memory == nullptr) {
    const runner::core::RunError error =
        memory == nullptr ? runner::core::RunError("\"" + path + "\" is empty") : cannot_read(path);
    close(descriptor_);
    throw error;
  }
  size_ = status.st_size;
  bytes_ = static_cast<const unsigned char*>(memory);
}

MappedFile::~MappedFile() {
  munmap(const_cast<unsigned char*>(bytes_), static_cast<std::size_t>(size_));
  close(descriptor_);
}

void MappedFile::check_whole() const {
  struct stat status {};
  if (fstat(descriptor_, &status) == 0 && status.st_size < size_) {
    throw runner::core::RunError("\"" + path_ + "\" was truncated: it ends at byte " + std::to_string(status.st_size) +
                                     ", and had " + std::to_string(size_),
                                 "do not change the files of a run until it ends");
  }
}

}  // namespace components::data

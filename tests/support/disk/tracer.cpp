#include "tests/support/disk/tracer.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <stdexcept>

// After the kernel's own: <linux/ptrace.h> and <sys/ptrace.h> do not agree on names.
#ifndef PTRACE_EVENT_STOP
#define PTRACE_EVENT_STOP 128
#endif

namespace tests {
namespace {

namespace fs = std::filesystem;

using Kind = DiskEvent::Kind;
using Registers = user_regs_struct;

struct Named {
  const char* name;
  unsigned long long number;
};

// Those that may not count, and those that are shown by name when something fails.
constexpr Named kWithoutFiles[] = {
    {"futex", SYS_futex},
    {"brk", SYS_brk},
    {"madvise", SYS_madvise},
    {"mprotect", SYS_mprotect},
    {"munmap", SYS_munmap},
    {"mremap", SYS_mremap},
    {"clock_nanosleep", SYS_clock_nanosleep},
    {"nanosleep", SYS_nanosleep},
    {"clock_gettime", SYS_clock_gettime},
    {"gettimeofday", SYS_gettimeofday},
    {"sched_yield", SYS_sched_yield},
    {"sched_getaffinity", SYS_sched_getaffinity},
    {"rt_sigprocmask", SYS_rt_sigprocmask},
    {"rt_sigaction", SYS_rt_sigaction},
    {"rt_sigreturn", SYS_rt_sigreturn},
    {"restart_syscall", SYS_restart_syscall},
    {"getpid", SYS_getpid},
    {"gettid", SYS_gettid},
    {"geteuid", SYS_geteuid},
    {"getrandom", SYS_getrandom},
    {"clone", SYS_clone},
    {"clone3", SYS_clone3},
    {"set_robust_list", SYS_set_robust_list},
    {"rseq", SYS_rseq},
    {"exit", SYS_exit},
    {"exit_group", SYS_exit_group},
};

constexpr Named kOthers[] = {
    {"read", SYS_read},
    {"pread64", SYS_pread64},
    {"write", SYS_write},
    {"pwrite64", SYS_pwrite64},
    {"writev", SYS_writev},
    {"pwritev", SYS_pwritev},
    {"open", SYS_open},
    {"openat", SYS_openat},
    {"close", SYS_close},
    {"stat", SYS_stat},
    {"lstat", SYS_lstat},
    {"fstat", SYS_fstat},
    {"newfstatat", SYS_newfstatat},
    {"statx", SYS_statx},
    {"statfs", SYS_statfs},
    {"fstatfs", SYS_fstatfs},
    {"access", SYS_access},
    {"faccessat2", SYS_faccessat2},
    {"getdents64", SYS_getdents64},
    {"readlink", SYS_readlink},
    {"fcntl", SYS_fcntl},
    {"lseek", SYS_lseek},
    {"mmap", SYS_mmap},
    {"fsync", SYS_fsync},
    {"fdatasync", SYS_fdatasync},
    {"sync_file_range", SYS_sync_file_range},
    {"fallocate", SYS_fallocate},
    {"ftruncate", SYS_ftruncate},
    {"mkdir", SYS_mkdir},
    {"mkdirat", SYS_mkdirat},
    {"rename", SYS_rename},
    {"renameat", SYS_renameat},
    {"renameat2", SYS_renameat2},
    {"unlink", SYS_unlink},
    {"unlinkat", SYS_unlinkat},
    {"rmdir", SYS_rmdir},
};

/// They change a disk in ways that no event tells.
constexpr unsigned long long kNotUnderstood[] = {SYS_link,     SYS_linkat,          SYS_symlink,       SYS_symlinkat,
                                                 SYS_truncate, SYS_copy_file_range, SYS_sendfile,      SYS_splice,
                                                 SYS_pwritev2, SYS_io_submit,       SYS_mknod,         SYS_mknodat,
                                                 SYS_creat,    SYS_io_uring_enter,  SYS_io_uring_setup};

std::string name_of(unsigned long long number) {
  for (const Named& named : kWithoutFiles) {
    if (named.number == number) return named.name;
  }
  for (const Named& named : kOthers) {
    if (named.number == number) return named.name;
  }
  return "call " + std::to_string(number);
}

/// One thread of the program.
struct Thread {
  bool inside = false;  ///< of a call
  unsigned long long number = 0;
  std::array<unsigned long long, 6> arguments{};
  bool injected = false;           ///< this very call
  std::vector<DiskEvent> pending;  ///< what it does when it succeeds
};

bool counts(const Thread& thread) {
  if (thread.number == SYS_mmap && (thread.arguments[3] & MAP_ANONYMOUS) != 0) return false;
  return std::none_of(std::begin(kWithoutFiles), std::end(kWithoutFiles),
                      [&](const Named& named) { return named.number == thread.number; });
}

std::string memory_text(pid_t thread, unsigned long long address) {
  std::string text;
  std::array<char, 256> piece{};
  while (address != 0) {
    // Up to the end of a page, which is what is known to be there.
    const std::size_t wanted = std::min<std::size_t>(piece.size(), 4096 - address % 4096);
    iovec here{piece.data(), wanted};
    iovec there{reinterpret_cast<void*>(address), wanted};
    const ssize_t got = process_vm_readv(thread, &here, 1, &there, 1, 0);
    if (got <= 0) break;
    const char* const begin = piece.data();
    const char* const end = std::find(begin, begin + got, '\0');
    text.append(begin, end);
    if (end != begin + got) break;
    address += static_cast<unsigned long long>(got);
  }
  return text;
}

std::string memory(pid_t thread, unsigned long long address, std::size_t bytes) {
  std::string data(bytes, '\0');
  iovec here{data.data(), bytes};
  iovec there{reinterpret_cast<void*>(address), bytes};
  if (bytes > 0 && process_vm_readv(thread, &here, 1, &there, 1, 0) != static_cast<ssize_t>(bytes)) {
    throw std::runtime_error("the memory of a traced call cannot be read");
  }
  return data;
}

std::string proc(pid_t thread, const std::string& name) { return "/proc/" + std::to_string(thread) + "/" + name; }

std::string link_target(const std::string& path) {
  std::array<char, PATH_MAX> target{};
  const ssize_t length = ::readlink(path.c_str(), target.data(), target.size());
  return length > 0 ? std::string(target.data(), static_cast<std::size_t>(length)) : "";
}

std::string path_of_descriptor(pid_t thread, unsigned long long descriptor) {
  return link_target(proc(thread, "fd/" + std::to_string(static_cast<int>(descriptor))));
}

std::int64_t position_of(pid_t thread, unsigned long long descriptor) {
  std::ifstream info(proc(thread, "fdinfo/" + std::to_string(static_cast<int>(descriptor))));
  std::string word;
  std::int64_t position = 0;
  unsigned long flags = 0;
  info >> word >> position >> word >> std::oct >> flags;
  if ((flags & O_APPEND) == 0) return position;
  struct stat status {};
  const std::string path = proc(thread, "fd/" + std::to_string(static_cast<int>(descriptor)));
  return ::stat(path.c_str(), &status) == 0 ? status.st_size : 0;
}

std::string absolute(pid_t thread, int folder, const std::string& path) {
  if (path.starts_with('/')) return fs::path(path).lexically_normal().string();
  const std::string base =
      folder == AT_FDCWD ? link_target(proc(thread, "cwd")) : path_of_descriptor(thread, static_cast<unsigned>(folder));
  return (fs::path(base) / path).lexically_normal().string();
}

bool exists(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0;
}

class Tracer {
 public:
  explicit Tracer(const TraceOptions& options) : options_(options) {}

  std::optional<Traced> run(const std::vector<std::string>& command) {
    if (!start(command)) return std::nullopt;
    while (!threads_.empty()) {
      int status = 0;
      const pid_t thread = ::waitpid(-1, &status, __WALL | __WNOTHREAD);
      if (thread < 0 && errno == EINTR) continue;
      if (thread < 0) break;
      on_stop(thread, status);
    }
    read_output();
    return std::move(result_);
  }

 private:
  bool start(const std::vector<std::string>& command) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    // The output waits in the pipe until the end: it has to fit, and what these programs say does.
    ::fcntl(ends[1], F_SETPIPE_SZ, 1 << 20);
    program_ = ::fork();
    if (program_ == 0) {
      ::dup2(ends[1], STDOUT_FILENO);
      ::dup2(ends[1], STDERR_FILENO);
      std::vector<char*> words;
      for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
      words.push_back(nullptr);
      if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(126);
      ::raise(SIGSTOP);
      ::execv(words[0], words.data());
      ::_exit(127);
    }
    ::close(ends[1]);
    pipe_ = ends[0];
    int status = 0;
    if (program_ < 0 || ::waitpid(program_, &status, __WALL) < 0 || !WIFSTOPPED(status)) return false;
    constexpr long kOptions = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                              PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
    if (::ptrace(PTRACE_SETOPTIONS, program_, nullptr, kOptions) != 0) {
      ::kill(program_, SIGKILL);
      return false;
    }
    threads_[program_] = {};
    go_on(program_, 0);
    return true;
  }

  static void go_on(pid_t thread, int signal) {
    ::ptrace(PTRACE_SYSCALL, thread, nullptr, static_cast<long>(signal));  // fails only when it is dead by now
  }

  void on_stop(pid_t thread, int status) {
    if (WIFEXITED(status) || WIFSIGNALED(status)) {
      if (thread == program_) result_.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      threads_.erase(thread);
      return;
    }
    const int signal = WSTOPSIG(status);
    if (signal == (SIGTRAP | 0x80)) return on_call(thread);
    const int event = status >> 16;
    if (event != 0 || (threads_.emplace(thread, Thread{}).second && signal == SIGSTOP)) return go_on(thread, 0);
    go_on(thread, signal == SIGTRAP ? 0 : signal);
  }

  void on_call(pid_t id) {
    Thread& thread = threads_[id];
    Registers registers{};
    if (::ptrace(PTRACE_GETREGS, id, nullptr, &registers) != 0) return;  // killed meanwhile
    thread.inside = !thread.inside;
    if (thread.inside) {
      on_entry(id, thread, registers);
    } else {
      on_exit(id, thread, registers);
    }
    go_on(id, 0);
  }

  void on_entry(pid_t id, Thread& thread, Registers& registers) {
    thread.number = registers.orig_rax;
    thread.arguments = {registers.rdi, registers.rsi, registers.rdx, registers.r10, registers.r8, registers.r9};
    thread.injected = false;
    thread.pending.clear();
    if (is_mark(id, thread)) return;
    if (!options_.record_below.empty()) thread.pending = understood(id, thread);
    if (begins_window(id, thread)) in_window_ = true;
    if (!in_window_ || !counts(thread)) return;
    ++result_.calls;
    if (!options_.record_below.empty()) result_.counted.push_back(text_of(id, thread));
    if (options_.injection.kind == Injection::Kind::kNone || result_.calls != options_.injection.at) return;
    result_.injected_call = text_of(id, thread);
    inject(id, thread, registers);
  }

  void inject(pid_t id, Thread& thread, Registers& registers) {
    switch (options_.injection.kind) {
      case Injection::Kind::kNone: return;
      case Injection::Kind::kKillBefore: ::kill(program_, SIGKILL); break;
      case Injection::Kind::kKillAfter: thread.injected = true; break;
      case Injection::Kind::kError:
        registers.orig_rax = static_cast<unsigned long long>(-1);  // no such call: nothing happens
        ::ptrace(PTRACE_SETREGS, id, nullptr, &registers);
        thread.injected = true;
        thread.pending.clear();
        break;
      case Injection::Kind::kShort: {
        static const std::set<unsigned long long> kCuttable = {SYS_read, SYS_pread64, SYS_write, SYS_pwrite64};
        if (!kCuttable.contains(thread.number) || registers.rdx < 2) return;
        registers.rdx /= 2;
        thread.arguments[2] = registers.rdx;
        ::ptrace(PTRACE_SETREGS, id, nullptr, &registers);
        break;
      }
    }
    result_.injected = true;
  }

  void on_exit(pid_t id, Thread& thread, Registers& registers) {
    if (thread.injected && options_.injection.kind == Injection::Kind::kKillAfter) ::kill(program_, SIGKILL);
    if (thread.injected && options_.injection.kind == Injection::Kind::kError) {
      registers.rax = static_cast<unsigned long long>(-options_.injection.error);
      ::ptrace(PTRACE_SETREGS, id, nullptr, &registers);
    }
    const auto returned = static_cast<long long>(registers.rax);
    if (returned < 0) return;
    for (DiskEvent& event : thread.pending) {
      if (event.kind == Kind::kWrite) event.data.resize(static_cast<std::size_t>(returned));
      event.calls_before = result_.calls;
      result_.events.push_back(std::move(event));
    }
    thread.pending.clear();
  }

  bool is_mark(pid_t id, const Thread& thread) {
    unsigned long long address = 0;
    if (thread.number == SYS_access) address = thread.arguments[0];
    if (thread.number == SYS_faccessat || thread.number == SYS_faccessat2) address = thread.arguments[1];
    if (address == 0) return false;
    const std::string path = memory_text(id, address);
    if (path == kWindowBegin) in_window_ = true;
    if (path == kWindowEnd) in_window_ = false;
    if (path == kWindowMark) result_.events.push_back({.kind = Kind::kMark, .calls_before = result_.calls});
    return path == kWindowBegin || path == kWindowEnd || path == kWindowMark;
  }

  bool begins_window(pid_t id, const Thread& thread) {
    if (!options_.begin || in_window_ || name_of(thread.number) != options_.begin->call) return false;
    return text_of(id, thread).find(options_.begin->path_part) != std::string::npos &&
           ++begins_seen_ == options_.begin->time;
  }

  bool is_below(const std::string& path) const {
    return path == options_.record_below || path.starts_with(options_.record_below + "/");
  }

  std::string text_of(pid_t id, const Thread& thread) const {
    std::string text = name_of(thread.number);
    const auto& a = thread.arguments;
    switch (thread.number) {
      case SYS_open:
      case SYS_stat:
      case SYS_lstat:
      case SYS_access:
      case SYS_statfs:
      case SYS_mkdir:
      case SYS_rename:
      case SYS_unlink:
      case SYS_rmdir: return text + " " + memory_text(id, a[0]);
      case SYS_openat:
      case SYS_newfstatat:
      case SYS_mkdirat:
      case SYS_renameat:
      case SYS_renameat2:
      case SYS_unlinkat: return text + " " + memory_text(id, a[1]);
      case SYS_read:
      case SYS_pread64:
      case SYS_write:
      case SYS_pwrite64:
      case SYS_fsync:
      case SYS_fdatasync:
      case SYS_close:
      case SYS_fcntl:
      case SYS_ftruncate: return text + " " + path_of_descriptor(id, a[0]);
      default: return text;
    }
  }

  /// What the call will have done to the folder, if it succeeds.
  std::vector<DiskEvent> understood(pid_t id, const Thread& thread) {
    const auto& a = thread.arguments;
    const auto at = [&](std::size_t folder, std::size_t path) {
      return absolute(id, static_cast<int>(a[folder]), memory_text(id, a[path]));
    };
    const auto here = [&](std::size_t path) { return absolute(id, AT_FDCWD, memory_text(id, a[path])); };
    switch (thread.number) {
      case SYS_open: return opened(here(0), a[1]);
      case SYS_openat: return opened(at(0, 1), a[2]);
      case SYS_write: return written(id, a[0], memory(id, a[1], a[2]), position_of(id, a[0]));
      case SYS_pwrite64: return written(id, a[0], memory(id, a[1], a[2]), static_cast<std::int64_t>(a[3]));
      case SYS_writev: return written(id, a[0], gathered(id, a[1], a[2]), position_of(id, a[0]));
      case SYS_pwritev: return written(id, a[0], gathered(id, a[1], a[2]), static_cast<std::int64_t>(a[3]));
      case SYS_ftruncate: return on_file(id, a[0], Kind::kTruncate, static_cast<std::int64_t>(a[1]));
      case SYS_fallocate:
        if ((a[1] & ~static_cast<unsigned long long>(FALLOC_FL_KEEP_SIZE)) != 0) return doubt("fallocate with a mode");
        if ((a[1] & FALLOC_FL_KEEP_SIZE) != 0) return {};
        return on_file(id, a[0], Kind::kExtend, static_cast<std::int64_t>(a[2] + a[3]));
      case SYS_fsync:
      case SYS_fdatasync: return on_file(id, a[0], Kind::kSync, 0);
      case SYS_sync:
      case SYS_syncfs: return {{.kind = Kind::kSyncAll}};
      case SYS_mkdir: return below({{.kind = Kind::kMakeDir, .path = here(0)}});
      case SYS_mkdirat: return below({{.kind = Kind::kMakeDir, .path = at(0, 1)}});
      case SYS_rename: return below({{.kind = Kind::kRename, .path = here(0), .other = here(1)}});
      case SYS_renameat: return below({{.kind = Kind::kRename, .path = at(0, 1), .other = at(2, 3)}});
      case SYS_renameat2:
        return below(
            {{.kind = a[4] == RENAME_EXCHANGE ? Kind::kExchange : Kind::kRename, .path = at(0, 1), .other = at(2, 3)}});
      case SYS_unlink: return below({{.kind = Kind::kUnlink, .path = here(0)}});
      case SYS_unlinkat:
        return below({{.kind = a[2] == AT_REMOVEDIR ? Kind::kRemoveDir : Kind::kUnlink, .path = at(0, 1)}});
      case SYS_rmdir: return below({{.kind = Kind::kRemoveDir, .path = here(0)}});
      case SYS_mmap: return mapped(id, a);
      default: break;
    }
    if (std::find(std::begin(kNotUnderstood), std::end(kNotUnderstood), thread.number) != std::end(kNotUnderstood)) {
      return doubt("call " + std::to_string(thread.number));
    }
    return {};
  }

  std::vector<DiskEvent> doubt(const std::string& what) {
    if (result_.not_understood.empty()) result_.not_understood = what;
    return {};
  }

  std::vector<DiskEvent> below(std::vector<DiskEvent> events) const {
    std::erase_if(events, [this](const DiskEvent& event) { return !is_below(event.path); });
    return events;
  }

  std::vector<DiskEvent> opened(const std::string& path, unsigned long long flags) const {
    if (!is_below(path)) return {};
    std::vector<DiskEvent> events;
    const bool there = exists(path);
    if ((flags & O_CREAT) != 0 && !there) events.push_back({.kind = Kind::kCreate, .path = path});
    if ((flags & O_TRUNC) != 0 && there) events.push_back({.kind = Kind::kTruncate, .path = path});
    return events;
  }

  std::vector<DiskEvent> written(pid_t id, unsigned long long descriptor, std::string data, std::int64_t offset) const {
    return below({{.kind = Kind::kWrite,
                   .path = path_of_descriptor(id, descriptor),
                   .data = std::move(data),
                   .offset = offset}});
  }

  static std::string gathered(pid_t id, unsigned long long address, unsigned long long count) {
    const std::string raw = memory(id, address, count * sizeof(iovec));
    std::string data;
    for (unsigned long long i = 0; i < count; ++i) {
      iovec piece{};
      std::copy_n(raw.data() + i * sizeof piece, sizeof piece, reinterpret_cast<char*>(&piece));
      data += memory(id, reinterpret_cast<unsigned long long>(piece.iov_base), piece.iov_len);
    }
    return data;
  }

  std::vector<DiskEvent> on_file(pid_t id, unsigned long long descriptor, Kind kind, std::int64_t offset) const {
    return below({{.kind = kind, .path = path_of_descriptor(id, descriptor), .offset = offset}});
  }

  std::vector<DiskEvent> mapped(pid_t id, const std::array<unsigned long long, 6>& a) {
    const bool shared = (a[3] & MAP_SHARED) != 0 && (a[2] & PROT_WRITE) != 0 && (a[3] & MAP_ANONYMOUS) == 0;
    const std::string path = shared ? path_of_descriptor(id, a[4]) : "";
    // SQLite's index of its journal is rebuilt by the next one to open the database after a crash.
    if (shared && is_below(path) && !path.ends_with("-shm")) return doubt("a shared mapping of " + path);
    return {};
  }

  void read_output() {
    std::array<char, 4096> piece{};
    ssize_t count = 0;
    while ((count = ::read(pipe_, piece.data(), piece.size())) > 0) {
      result_.output.append(piece.data(), static_cast<std::size_t>(count));
    }
    ::close(pipe_);
  }

  const TraceOptions& options_;
  pid_t program_ = -1;
  int pipe_ = -1;
  bool in_window_ = false;
  int begins_seen_ = 0;
  std::map<pid_t, Thread> threads_;
  Traced result_;
};

}  // namespace

const std::vector<std::string>& calls_without_files() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const Named& named : kWithoutFiles) list.emplace_back(named.name);
    return list;
  }();
  return names;
}

std::optional<Traced> trace(const std::vector<std::string>& command, const TraceOptions& options) {
  return Tracer(options).run(command);
}

}  // namespace tests

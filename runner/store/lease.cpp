#include "runner/store/lease.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "runner/core/error.h"
#include "runner/core/json.h"
#include "runner/core/node.h"
#include "runner/core/platform/files.h"
#include "runner/core/platform/machine.h"
#include "runner/store/database/text.h"

namespace runner::store {
namespace {

constexpr int kFormat = 1;
constexpr std::int64_t kProcBytesMax = 64 << 10;

std::string path_of(const std::string& run_dir) { return run_dir + "/lease"; }

/// Clock ticks since boot at which a process started: tells it from a later one with the same number. "" when it is
/// gone.
std::string process_start(std::int64_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/stat";
  const std::string text = core::read_file(path, kProcBytesMax).value_or("");
  // The name in parentheses may hold anything; field 22 is the 20th after it.
  std::size_t at = text.rfind(')');
  if (at == std::string::npos) return "";
  for (int field = 0; field < 20; ++field) {
    at = text.find(' ', at + 1);
    if (at == std::string::npos) return "";
  }
  return text.substr(at + 1, text.find(' ', at + 1) - at - 1);
}

std::string random_token() {
  std::array<unsigned char, 12> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) < 0) std::memset(bytes.data(), 0, bytes.size());
  std::string token;
  for (const unsigned char byte : bytes) token += "0123456789abcdef"[byte >> 4], token += "0123456789abcdef"[byte & 15];
  return token;
}

struct Content {
  LeaseOwner owner;
  std::string boot, start, token;
};

/// Nothing when the file is empty (released, or made this moment) or not one of ours.
std::optional<Content> read(int descriptor) {
  std::array<char, 4096> bytes{};
  const ssize_t size = pread(descriptor, bytes.data(), bytes.size(), 0);
  if (size <= 0) return std::nullopt;
  const core::Node node = core::parse_json({bytes.data(), static_cast<std::size_t>(size)}).value_or(core::Node::null());
  if (!node.is_mapping()) return std::nullopt;
  const auto text = [&](const char* key) {
    const core::Node* value = node.find(key);
    return value != nullptr && value->is_string() ? value->as_string() : std::string();
  };
  const auto integer = [&](const char* key) {
    const core::Node* value = node.find(key);
    return value != nullptr && value->is_integer() ? value->as_integer() : std::int64_t{0};
  };
  Content content{{text("host"), integer("pid"), integer("since_ms"), integer("heartbeat_ms")},
                  text("boot_id"),
                  text("process_start"),
                  text("token")};
  if (content.owner.host.empty()) return std::nullopt;
  return content;
}

enum class Lock { kTaken, kHeld, kUnsupported };

Lock classify(int error) { return error == EAGAIN || error == EACCES ? Lock::kHeld : Lock::kUnsupported; }

Lock take_lock(int descriptor) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return fcntl(descriptor, F_OFD_SETLK, &lock) == 0 ? Lock::kTaken : classify(errno);
}

Lock read_lock(int descriptor) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  if (fcntl(descriptor, F_OFD_GETLK, &lock) != 0) return Lock::kUnsupported;
  return lock.l_type == F_UNLCK ? Lock::kTaken : Lock::kHeld;
}

/// Judges by the text when the lock gives no answer. On the same host the lock counts, or the process if the file
/// system has no locks; elsewhere (another host, or this one before a reboot) the heartbeat.
bool alive_by_text(const Content& content, Lock lock, const core::Clock& clock) {
  if (content.boot == core::boot_id()) {
    if (lock == Lock::kTaken) return false;
    const std::string start = process_start(content.owner.pid);
    return !start.empty() && start == content.start;
  }
  return clock.wall_ms() - content.owner.heartbeat_ms < kLeaseMs;
}

core::Failure held(const std::string& run_dir, const std::optional<Content>& content) {
  std::string message = run_dir + " is in use by ";
  if (content) {
    message += "pid " + std::to_string(content->owner.pid) + " on " + content->owner.host + " since " +
               utc_text(content->owner.since_ms);
  } else {
    message += "another process";
  }
  return {message, "wait for it, stop it, or start another run with `roux run RECIPE --new`"};
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return number_; }
  int give_up() { return std::exchange(number_, -1); }

 private:
  int number_;
};

core::Failure cannot_write(const std::string& run_dir, int error) {
  const bool is_full = error == ENOSPC || error == EDQUOT;
  const bool is_refused = error == EROFS || error == EACCES || error == EPERM;
  return {"cannot write " + path_of(run_dir) + ": " + std::strerror(error),
          is_full      ? "free some space; the same command then resumes"
          : is_refused ? "training goes on in the folder of the run: copy it to where you may write, and name the copy"
                       : "",
          is_full ? core::kExitResumable : core::kExitFailed};
}

}  // namespace

Lease::Lease(int descriptor, LeaseOwner owner, std::string text_token)
    : descriptor_(descriptor), owner_(std::move(owner)), token_(std::move(text_token)) {}

Lease::~Lease() {
  if (descriptor_ >= 0) close(descriptor_);
}

core::Result<std::unique_ptr<Lease>> Lease::acquire(const std::string& run_dir, const core::Clock& clock) {
  if (auto fits = core::check_is_file(path_of(run_dir)); !fits) return fits.failure();
  Descriptor file(open(path_of(run_dir).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (file.get() < 0) return cannot_write(run_dir, errno);
  const Lock lock = take_lock(file.get());
  const std::optional<Content> before = read(file.get());
  if (lock == Lock::kHeld || (before && alive_by_text(*before, lock, clock))) return held(run_dir, before);

  const std::int64_t now = clock.wall_ms();
  std::unique_ptr<Lease> lease(new Lease(file.give_up(), {core::host_name(), getpid(), now, now}, random_token()));
  if (!lease->write()) return cannot_write(run_dir, errno);
  return lease;
}

bool Lease::write() {
  core::Node node = core::Node::mapping();
  node.set("format", core::Node::integer(kFormat));
  node.set("host", core::Node::string(owner_.host));
  node.set("pid", core::Node::integer(owner_.pid));
  node.set("process_start", core::Node::string(process_start(owner_.pid)));
  node.set("boot_id", core::Node::string(core::boot_id()));
  node.set("token", core::Node::string(token_));
  node.set("since_ms", core::Node::integer(owner_.since_ms));
  node.set("heartbeat_ms", core::Node::integer(owner_.heartbeat_ms));
  const std::string text = core::to_json(node, -1) + "\n";
  // In place, because the lock sits on this very file; within a page, so that a reader sees all of it or nothing new.
  if (pwrite(descriptor_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) return false;
  return ftruncate(descriptor_, static_cast<off_t>(text.size())) == 0;
}

bool Lease::heartbeat(const core::Clock& clock) {
  const std::optional<Content> content = read(descriptor_);
  if (content && content->token != token_) return false;
  owner_.heartbeat_ms = clock.wall_ms();
  write();  // A full disk may refuse; the next beat tries again, and the lock holds meanwhile.
  return true;
}

void Lease::release() {
  // The file stays: deleting it would let two processes lock two files of one name.
  if (ftruncate(descriptor_, 0) != 0) {
    // Then the text names a dead process, which reads the same.
  }
  close(std::exchange(descriptor_, -1));
}

std::optional<LeaseOwner> live_owner(const std::string& run_dir, const core::Clock& clock) {
  if (!core::check_is_file(path_of(run_dir))) return std::nullopt;
  const Descriptor file(open(path_of(run_dir).c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return std::nullopt;
  const Lock lock = read_lock(file.get());
  const std::optional<Content> content = read(file.get());
  if (lock == Lock::kHeld) return content ? content->owner : LeaseOwner{"this host", 0, 0, 0};
  if (content && alive_by_text(*content, lock, clock)) return content->owner;
  return std::nullopt;
}

bool has_lease_file(const std::string& run_dir) {
  struct stat info {};
  return stat(path_of(run_dir).c_str(), &info) == 0;
}

}  // namespace runner::store

#pragma once

#include <atomic>
#include <cstdint>
#include <future>
#include <string>
#include <vector>

#include "runner/core/node.h"

namespace runner::artifact {

inline constexpr const char* kDiffFile = "code.diff";

/// What git says about the folder in which a run was started: which commit, and what differs from it.
struct GitState {
  std::string commit, branch, remote;  ///< "" where there is none; the remote without user and password
  std::int64_t changed = 0;            ///< files under version control that differ from the commit
  std::vector<std::string> untracked;  ///< as git spells them; the first kUntrackedMax
  std::int64_t untracked_count = 0;
  std::string diff;          ///< from the commit to the files; `git apply` takes it where it was not cut
  bool diff_is_cut = false;  ///< it went on beyond the limit
  std::string note;          ///< why nothing, or not everything, is known; "" where it is

  static constexpr std::int64_t kUntrackedMax = 100;

  core::Node to_node() const;  ///< without the diff itself: its size, and the name of the file it goes to
};

struct GitStateOptions {
  std::string folder = ".";
  std::int64_t diff_bytes_max = 1 << 20;
  std::string git = "git";  ///< the program
};

/// Asks the program `git`, which may be missing: then `note` says so. Takes some ten milliseconds, and is given up
/// after ten seconds or when `stop` is set. Changes nothing in the repository.
GitState read_git_state(const GitStateOptions& options, const std::atomic<bool>& stop);

/// read_git_state() beside what else there is to do at a start, at the lowest priority.
class GitStateCapture {
 public:
  explicit GitStateCapture(const GitStateOptions& options);
  ~GitStateCapture() {
    stop_ = true;
    state_.wait();  // somebody else may hold the future, too, and the work looks at stop_ to its end
  }
  GitStateCapture(const GitStateCapture&) = delete;
  GitStateCapture& operator=(const GitStateCapture&) = delete;

  std::shared_future<GitState> state() const { return state_; }

 private:
  std::atomic<bool> stop_{false};
  std::shared_future<GitState> state_;
};

}  // namespace runner::artifact

#pragma once

#include <atomic>
#include <cstdint>
#include <future>
#include <string>
#include <vector>

#include "runner/core/node.h"

namespace runner::artifact {

inline constexpr const char* kDiffFile = "code.diff";

/// The git state of the folder in which a run was started: the commit, and the difference from it.
struct GitState {
  std::string commit, branch, remote;  ///< "" if there is none; the remote without user and password
  std::int64_t changed = 0;            ///< files under version control that differ from the commit
  std::vector<std::string> untracked;  ///< as git spells them; the first kUntrackedMax
  std::int64_t untracked_count = 0;
  std::string diff;          ///< from the commit to the files; usable with `git apply` unless cut
  bool diff_is_cut = false;  ///< it was cut at the limit
  std::string note;          ///< why nothing, or not everything, is known; "" if complete

  static constexpr std::int64_t kUntrackedMax = 100;

  core::Node to_node() const;  ///< without the diff itself: its size, and the name of the file it goes to
};

struct GitStateOptions {
  std::string folder = ".";
  std::int64_t diff_bytes_max = 1 << 20;
  std::string git = "git";  ///< the program
};

/// Runs the program `git`; if it is missing, `note` says so. Takes about ten milliseconds; gives up after ten seconds
/// or when `stop` is set. Changes nothing in the repository.
GitState read_git_state(const GitStateOptions& options, const std::atomic<bool>& stop);

/// read_git_state() in the background of a start, at the lowest priority.
class GitStateCapture {
 public:
  explicit GitStateCapture(const GitStateOptions& options);
  ~GitStateCapture() {
    stop_ = true;
    state_.wait();  // another owner may hold the future, too, and the work reads stop_ to its end
  }
  GitStateCapture(const GitStateCapture&) = delete;
  GitStateCapture& operator=(const GitStateCapture&) = delete;

  std::shared_future<GitState> state() const { return state_; }

 private:
  std::atomic<bool> stop_{false};
  std::shared_future<GitState> state_;
};

}  // namespace runner::artifact

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runner/artifact/checkpoint_dir.h"
#include "runner/artifact/io/io.h"

namespace runner::artifact {

/// One save that several processes write into one folder: the first one makes the folder and commits it with the files
/// of all. They meet by hidden files in it, on their own threads, while training uses their connections.
struct JointSave {
  int process = 0, processes = 1;
  std::int64_t number = 0;                  ///< of the save in its run: one step may be saved twice
  std::int64_t first = 0;                   ///< the first process, by the number that its system gave it
  double timeout_s = 0;                     ///< of waiting for another process
  std::function<bool()> give_up = nullptr;  ///< asked while waiting
  /// Whether a process that is waited for has ended; asked while waiting.
  std::function<bool(int process)> has_ended = nullptr;
};

/// What one process wrote.
struct Share {
  std::vector<FileEntry> files;
  std::vector<PieceSet> pieces;
};

/// The first process: the folder is there for this save.
void open_draft(Io& io, const std::string& folder, const JointSave& save);
/// The others: waits for that. RunError when it does not come, or the save was given up.
void await_draft(const std::string& folder, const JointSave& save);

/// All but the first one: its files are on the disk.
void hand_in(Io& io, const std::string& folder, const JointSave& save, const Share& share);
/// It cannot write them.
void hand_in_failure(Io& io, const std::string& folder, const JointSave& save, const core::Failure& failure);
/// The first one: waits for all others and takes their shares, in order; what they met by is gone then. RunError that
/// names the process which failed or did not finish in time.
std::vector<Share> collect_shares(Io& io, const std::string& folder, const JointSave& save);

/// Adds the pieces of another process to those of the same tensors.
void add_pieces(std::vector<PieceSet>& to, const std::vector<PieceSet>& more);

}  // namespace runner::artifact

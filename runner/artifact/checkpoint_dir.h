#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runner/artifact/io/file_place.h"
#include "runner/core/node.h"
#include "runner/core/result.h"

namespace runner::artifact {

class Io;
class Throttle;
struct JointSave;
/// The disk itself; tests pass one that fails.
Io& system_io();

/// Consecutive bytes of a tensor, borrowed.
struct BytesPiece {
  const char* data = nullptr;
  std::int64_t bytes = 0;
};

/// Bytes of one tensor, borrowed. `dtype` is safetensors' word: F64 F32 BF16 F16 I64 I32 I16 I8 U8 BOOL, U16 U32 U64
/// F8_E4M3 F8_E5M2.
struct TensorBytes {
  std::string name;
  std::string dtype;
  std::vector<std::int64_t> shape;
  const void* data = nullptr;  ///< null where `pieces` has them
  std::int64_t bytes = 0;
  /// In order, where the bytes lie in several places: see tensor_bytes.h.
  std::vector<BytesPiece> pieces = {};
};

/// The metadata of a checkpoint besides its files (commit() adds format version, checksum and file table).
struct ManifestFields {
  std::int64_t step = 0;
  std::int64_t branch = 0;
  std::int64_t last_metric_row = 0;
  double trained_s = 0;  ///< seconds of training before it, across resumes: the clock for ages
  std::string run_id = {}, recipe_hash = {}, cpu_capability = {};
  int world_size = 1;
  int threads = 1;
  core::Node program = {};        ///< versions: `roux`, `source`, `libtorch`
  core::Node mesh = {};           ///< sizes by axis
  core::Node model_sizes = {};    ///< of the model that followed from its data, by the keys of its block
  core::Node data_position = {};  ///< epoch, sample index, ...
  core::Node metrics = {};        ///< monitored value, for save_best
};

struct FileEntry {
  std::string name;
  std::int64_t bytes = 0;
  std::string checksum;  ///< `xxh128:` and 32 hex digits, as `xxhsum -H2` prints them
};

/// A tensor whose rows lie in the files of several processes.
struct TensorPieces {
  struct Piece {
    std::string file;  ///< as pieced_tensors.h names it, and the tensor in it
    std::int64_t first_row = 0;
  };
  std::string name;
  std::vector<std::int64_t> shape;  ///< of the whole
  std::vector<Piece> pieces;
};

/// What lies in pieces of a set of tensors, such as `model.safetensors`.
struct PieceSet {
  std::string set;
  std::vector<TensorPieces> tensors;
};

struct Manifest {
  int format_version = 1;
  ManifestFields fields;
  std::int64_t created_ms = 0;
  std::vector<FileEntry> files;
  std::vector<PieceSet> pieces;  ///< of format version 2; empty: each tensor lies in one file
};

struct DraftOptions {
  bool direct = false;           ///< large files bypass the page cache, if the file system can
  Throttle* throttle = nullptr;  ///< throttles writing and reading back; null: full speed
  /// Of a save that several processes write together (joint_save.h); null: this one writes it alone.
  std::shared_ptr<const JointSave> joint = nullptr;
};

/// One save, in the order of docs/file-formats.md: free space, hidden folder, fsync of files and folder, then commit's
/// verification, rename and fsync of the parent. An uncommitted draft leaves nothing behind. One draft at a time per
/// folder: begin() deletes leftovers of dead processes and of earlier drafts of this one. Files may be added by several
/// threads at once.
///
/// Where several processes write it together, each has a writer, and the first one's commits; begin() of the others and
/// commit() of the first wait for one another. A file that could not be added may be added again, and one that was
/// added is not written again.
class CheckpointWriter {
 public:
  /// `bytes_needed`, of all processes, is checked against the free space first (Failure with the figures).
  static core::Result<std::unique_ptr<CheckpointWriter>> begin(const std::string& checkpoints_dir, std::int64_t step,
                                                               std::int64_t bytes_needed, Io& io = system_io(),
                                                               const DraftOptions& options = {});
  virtual ~CheckpointWriter() = default;
  /// Tensors in safetensors' order (by dtype, widest first, then name), data aligned to 64 bytes.
  virtual core::Result<void> add_safetensors(const std::string& file, std::vector<TensorBytes> tensors,
                                             const std::vector<std::pair<std::string, std::string>>& metadata) = 0;
  /// A file from memory; fastest when `data` is page-aligned.
  virtual core::Result<void> add_bytes(const std::string& file, const void* data, std::int64_t bytes) = 0;
  core::Result<void> add_text(const std::string& file, const std::string& content) {
    return add_bytes(file, content.data(), static_cast<std::int64_t>(content.size()));
  }
  /// What of the tensors in its files are pieces.
  virtual void add_pieces(std::vector<PieceSet> pieces) = 0;
  /// Tells the first process that this one's part cannot be written.
  virtual void give_up(const core::Failure& /*failure*/) {}
  /// Reads every file back and compares it, calls `metrics_committed` (flushes run.db; what it returns becomes
  /// `last_metric_row`), writes and verifies the manifest, renames, fsyncs. Returns the folder, `step-000500`. An
  /// existing one of that name is replaced atomically; if it is pinned or of another run, it is renamed to another
  /// visible name instead. May be retried after a Failure, such as a full disk. Of another process than the first:
  /// reads its own files back and hands them in; returns "".
  virtual core::Result<std::string> commit(ManifestFields fields,
                                           const std::function<std::int64_t()>& metrics_committed,
                                           std::int64_t now_ms) = 0;
};

struct CheckpointInfo {
  std::string path;
  std::int64_t step = 0;
  Manifest manifest;
};

/// Folders with roux's manifest, whatever their names, oldest first: by recorded branch, then recorded step (a later
/// branch starts from an earlier one, so its last is the newest). Ignores others. Does not check files.
std::vector<CheckpointInfo> list_checkpoints(const std::string& checkpoints_dir);
/// Folders with a manifest.json that is not valid, or that are named `step-000500` without one or are links, with the
/// reason.
std::vector<std::pair<std::string, core::Failure>> list_damaged(const std::string& checkpoints_dir);
bool is_pinned(const std::string& path);
/// Of all files that the manifest lists.
std::int64_t bytes_of(const Manifest& manifest);
/// Checks, without reading, that exactly the files of the manifest exist in their sizes. Ignores names with a leading
/// dot (`.nfs...`, `.DS_Store`); `pinned` is roux's own mark.
core::Result<void> check_sizes(const std::string& path, const Manifest& manifest);
/// Sizes and checksums of every file and of the manifest itself. `from_disk`: bypass the page cache, if the file system
/// can, to check what is really on disk.
core::Result<Manifest> verify_checkpoint(const std::string& path, bool from_disk = false);
/// The same with the caller's own check of each file; up to two at a time, each on its own thread.
using FileCheck = std::function<core::Result<void>(const std::string& path, const FileEntry& recorded)>;
core::Result<Manifest> verify_checkpoint(const std::string& path, const FileCheck& check);
/// The newest one that verifies and, if `run_id` is given, belongs to that run; `skipped` gets a line for each newer
/// one, with the reason.
std::optional<CheckpointInfo> newest_verified(const std::string& checkpoints_dir, std::vector<std::string>& skipped,
                                              const std::string& run_id = "");

/// A file of tensors, memory-mapped; open() reads safetensors. Views live as long as the object.
class SafetensorsReader {
 public:
  static core::Result<std::unique_ptr<SafetensorsReader>> open(const std::string& path);
  virtual ~SafetensorsReader() = default;
  virtual const std::vector<TensorBytes>& tensors() const = 0;
  virtual const TensorBytes* find(const std::string& name) const = 0;
  virtual const std::vector<std::pair<std::string, std::string>>& metadata() const = 0;
  /// These bytes of a tensor were read: the process need not keep their pages of the file. Read again, they come back.
  virtual void let_go(const void* /*data*/, std::int64_t /*bytes*/) const {}
  /// Where the first of a tensor's bytes is, or of a piece of them; nothing: in no file that could be read from there.
  virtual std::optional<FilePlace> place_of(const void* /*data*/) const { return {}; }
};

}  // namespace runner::artifact

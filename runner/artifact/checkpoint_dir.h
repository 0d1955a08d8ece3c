#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runner/core/node.h"
#include "runner/core/result.h"

namespace runner::artifact {

class Io;
class Throttle;
/// The disk itself; tests pass one that fails.
Io& system_io();

/// Bytes of one tensor, borrowed. `dtype` is safetensors' word: F64 F32 BF16 F16 I64 I32 I16 I8 U8 BOOL, U16 U32 U64
/// F8_E4M3 F8_E5M2.
struct TensorBytes {
  std::string name;
  std::string dtype;
  std::vector<std::int64_t> shape;
  const void* data = nullptr;
  std::int64_t bytes = 0;
};

/// What a checkpoint says of itself besides its files (format version, checksum and file table are added by commit()).
struct ManifestFields {
  std::int64_t step = 0;
  std::int64_t branch = 0;
  std::int64_t last_metric_row = 0;
  double trained_s = 0;  ///< seconds of training before it, over all resumes: ages are counted by it
  std::string run_id = {}, recipe_hash = {}, cpu_capability = {};
  int world_size = 1;
  int threads = 1;
  core::Node program = {};        ///< versions: `roux`, `source`, `libtorch`
  core::Node mesh = {};           ///< sizes by axis
  core::Node data_position = {};  ///< epoch, sample index, ...
  core::Node metrics = {};        ///< monitored value, for save_best
};

struct FileEntry {
  std::string name;
  std::int64_t bytes = 0;
  std::string checksum;  ///< `xxh128:` and 32 hex digits, as `xxhsum -H2` prints them
};

struct Manifest {
  int format_version = 1;
  ManifestFields fields;
  std::int64_t created_ms = 0;
  std::vector<FileEntry> files;
};

struct DraftOptions {
  bool direct = false;       ///< large files past the page cache, where the file system can
  Throttle* pace = nullptr;  ///< rests between pieces of writing and of reading back; null goes as fast as it can
};

/// One save, in the order of docs/file-formats.md: free space, hidden folder, fsync of files and folder, then commit's
/// verification, rename and fsync of the parent. A draft that is not committed leaves nothing behind. One draft at a
/// time for one folder: what drafts of dead processes, and earlier ones of this process, left there is deleted by
/// begin(). Files may be added by several threads at once.
class CheckpointWriter {
 public:
  /// `bytes_needed` is checked against the free space first (Failure with the figures).
  static core::Result<std::unique_ptr<CheckpointWriter>> begin(const std::string& checkpoints_dir, std::int64_t step,
                                                               std::int64_t bytes_needed, Io& io = system_io(),
                                                               const DraftOptions& options = {});
  virtual ~CheckpointWriter() = default;
  /// Tensors in safetensors' order (by dtype, widest first, then name), data aligned to 64 bytes.
  virtual core::Result<void> add_safetensors(const std::string& file, std::vector<TensorBytes> tensors,
                                             const std::vector<std::pair<std::string, std::string>>& metadata) = 0;
  /// A file as it lies in memory; fastest when `data` is aligned to a page.
  virtual core::Result<void> add_bytes(const std::string& file, const void* data, std::int64_t bytes) = 0;
  core::Result<void> add_text(const std::string& file, const std::string& content) {
    return add_bytes(file, content.data(), static_cast<std::int64_t>(content.size()));
  }
  /// Reads every file back and compares it, calls `metrics_committed` (flushes run.db; what it returns becomes
  /// `last_metric_row`), writes and verifies the manifest, renames, fsyncs. Returns the folder, `step-000500`. One of
  /// that name is replaced in the same moment; when it is pinned or none of this run's, it is put aside under another
  /// visible name instead. After a Failure, as of a full disk, it may be called again.
  virtual core::Result<std::string> commit(ManifestFields fields,
                                           const std::function<std::int64_t()>& metrics_committed,
                                           std::int64_t now_ms) = 0;
};

struct CheckpointInfo {
  std::string path;
  std::int64_t step = 0;
  Manifest manifest;
};

/// Folders with our manifest, whatever their names, oldest first: by recorded branch, then recorded step (a later
/// branch starts from an earlier one, so the last of it is the newest). Others are left alone. Files are not looked at.
std::vector<CheckpointInfo> list_checkpoints(const std::string& checkpoints_dir);
/// Folders that hold a manifest.json which cannot be taken for ours, or are called `step-000500` and hold none or are
/// links, and why.
std::vector<std::pair<std::string, core::Failure>> list_damaged(const std::string& checkpoints_dir);
bool is_pinned(const std::string& path);
/// Of all files that the manifest lists.
std::int64_t bytes_of(const Manifest& manifest);
/// Whether the files that the manifest lists are there in their sizes, and no others: what can be said without reading
/// them. Names with a dot in front (`.nfs...`, `.DS_Store`) are nobody's; `pinned` is roux's own mark.
core::Result<void> check_sizes(const std::string& path, const Manifest& manifest);
/// Sizes and checksums of every file and of the manifest itself. `from_disk`: past the page cache, where the file
/// system can, so that it is the disk that is asked and not what was meant for it.
core::Result<Manifest> verify_checkpoint(const std::string& path, bool from_disk = false);
/// The same with a look of the caller's own at each file; up to two at a time, each on its thread.
using LookAtFile = std::function<core::Result<void>(const std::string& path, const FileEntry& recorded)>;
core::Result<Manifest> verify_checkpoint(const std::string& path, const LookAtFile& look);
/// The newest one that verifies and, where `run_id` is given, belongs to that run; `skipped` gets a line for each newer
/// one, with the reason.
std::optional<CheckpointInfo> newest_verified(const std::string& checkpoints_dir, std::vector<std::string>& skipped,
                                              const std::string& run_id = "");

/// A safetensors file, memory-mapped. Views live as long as the object.
class SafetensorsReader {
 public:
  static core::Result<std::unique_ptr<SafetensorsReader>> open(const std::string& path);
  virtual ~SafetensorsReader() = default;
  virtual const std::vector<TensorBytes>& tensors() const = 0;
  virtual const TensorBytes* find(const std::string& name) const = 0;
  virtual const std::vector<std::pair<std::string, std::string>>& metadata() const = 0;
};

}  // namespace runner::artifact

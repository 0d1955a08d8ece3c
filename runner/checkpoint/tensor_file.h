#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runner/artifact/checkpoint_dir.h"
#include "runner/core/tensor_fwd.h"

namespace runner::checkpoint {

class CheckpointPrefetch;

/// A stretch of memory to be copied. It borrows `from` until then.
struct CopyPiece {
  char* to;
  const char* from;
  std::int64_t bytes;
};

/// Copies with LibTorch's threads, in pieces that they finish together.
void copy_all(const std::vector<CopyPiece>& pieces);

/// The tensors of one safetensors file on their way to it. Keeps what it was given, and copies of those that do not lie
/// in the CPU's memory in row-major order without gaps; the strides of a dense tensor in another order are recorded.
class TensorFile {
 public:
  explicit TensorFile(std::string file_name);
  ~TensorFile();
  TensorFile(TensorFile&&) noexcept;

  /// RunError when safetensors has no word for the tensor's type.
  void add(const std::string& name, const at::Tensor& tensor);

  const std::string& file_name() const { return file_name_; }
  bool empty() const;
  std::int64_t bytes() const;  ///< of the whole file, its header too
  /// From now on the file is what lies at `memory`, bytes() long and aligned to a page. Adds to `pieces` what the
  /// caller has to copy to make it so; release() then lets go of the tensors.
  void move_to(char* memory, std::vector<CopyPiece>& pieces);
  void release();
  core::Result<void> write(artifact::CheckpointWriter& draft) const;

 private:
  struct Contents;
  void lay_out() const;
  std::string file_name_;
  std::unique_ptr<Contents> contents_;
};

/// A safetensors file, or all the shards of an index, on its way back.
class TensorSource {
 public:
  /// RunError when it cannot be read as one. `held`: where its files may be in memory already; null where none is.
  explicit TensorSource(std::string path, CheckpointPrefetch* held = nullptr);
  ~TensorSource();

  const std::string& path() const { return path_; }
  const std::vector<artifact::TensorBytes>& tensors() const;
  const artifact::TensorBytes* find(const std::string& name) const;
  /// A tensor of its own on the CPU with the recorded strides; RunError when there is none of that name.
  at::Tensor tensor(const std::string& name) const;
  /// Fills `target` (same shape; other floating types are converted) in its own memory order.
  void copy_to(const artifact::TensorBytes& bytes, const at::Tensor& target) const;

 private:
  at::Tensor row_major(const artifact::TensorBytes& bytes) const;

  std::string path_;
  CheckpointPrefetch* held_;
  std::unique_ptr<artifact::SafetensorsReader> reader_;
};

/// Of the shape and type that a file at `path` records; its content is not set. RunError for a type that LibTorch has
/// not.
at::Tensor new_tensor(const artifact::TensorBytes& bytes, const std::string& path);

/// safetensors' word for the tensor's type, "" when it has none.
std::string dtype_word(const at::Tensor& tensor);

}  // namespace runner::checkpoint

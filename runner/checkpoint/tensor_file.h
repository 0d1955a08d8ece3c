#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "components/tensor/download.h"
#include "runner/artifact/checkpoint_dir.h"
#include "runner/checkpoint/weight_access.h"
#include "runner/core/tensor_fwd.h"

namespace runner::pretrained {
class PackedReader;
struct PackedWeight;
}  // namespace runner::pretrained

namespace runner::checkpoint {

class CheckpointPrefetch;

/// A piece of memory to be copied. It borrows `from` until then.
struct CopyPiece {
  char* to;
  const char* from;
  std::int64_t bytes;
};

/// Copies with LibTorch's threads, in pieces that balance the load.
void copy_all(const std::vector<CopyPiece>& pieces);

/// The tensors to write into one safetensors file. Keeps those given, and copies of those that are not contiguous on
/// the CPU; records the strides of a dense tensor in another memory order.
class TensorFile {
 public:
  /// `download` copies all tensors: the file is complete after its wait(). Null: see above.
  explicit TensorFile(std::string file_name, components::Download* download = nullptr);
  ~TensorFile();
  TensorFile(TensorFile&&) noexcept;

  /// RunError when safetensors does not support the tensor's type.
  void add(const std::string& name, const at::Tensor& tensor);

  const std::string& file_name() const { return file_name_; }
  bool empty() const;
  std::int64_t bytes() const;  ///< of the whole file, including its header
  /// From now on the file's content is at `memory`, bytes() long and page-aligned. Adds to `pieces` what the caller
  /// must copy there; release() then releases the tensors.
  void move_to(char* memory, std::vector<CopyPiece>& pieces);
  void release();
  core::Result<void> write(artifact::CheckpointWriter& draft) const;

 private:
  struct Contents;
  void lay_out() const;
  std::string file_name_;
  components::Download* download_;
  std::unique_ptr<Contents> contents_;
};

/// Reads a file of tensors (artifact::open_tensor_file()), or all shards of an index. Weights in fewer than 16 bits are
/// one tensor each, as pretrained::PackedReader has them.
class TensorSource {
 public:
  /// RunError when it cannot be read. `prefetched`: files that may be in memory already; may be null.
  explicit TensorSource(std::string path, CheckpointPrefetch* prefetched = nullptr);
  ~TensorSource();

  const std::string& path() const { return path_; }
  const std::vector<artifact::TensorBytes>& tensors() const;
  const artifact::TensorBytes* find(const std::string& name) const;
  /// See pretrained::PackedReader.
  const pretrained::PackedWeight* packed(const std::string& name) const;
  /// A new CPU tensor with the recorded strides; RunError when there is no tensor of that name.
  at::Tensor tensor(const std::string& name) const;
  /// Fills `target` (same shape; other floating types are converted, and what is packed becomes one) in its own memory
  /// order. Beside it only a piece of the tensor is in memory.
  void copy_to(const artifact::TensorBytes& bytes, const at::Tensor& target) const;
  /// See artifact::SafetensorsReader.
  void let_go(const artifact::TensorBytes& bytes) const;
  /// Where the bytes of a tensor lie, which become rows from `first_row` on of a matrix whose rows have `of` elements,
  /// or columns of it. RunError where they are in no file as they are used, such as a packed weight.
  std::vector<FilePart> parts_of(const artifact::TensorBytes& bytes, std::int64_t first_row, bool transposed) const;

 private:
  void copy_packed(const pretrained::PackedWeight& weight, const at::Tensor& target) const;
  void copy_piece(const artifact::TensorBytes& piece, const at::Tensor& target) const;
  at::Tensor row_major(const artifact::TensorBytes& bytes) const;

  std::string path_;
  CheckpointPrefetch* prefetched_;
  std::unique_ptr<pretrained::PackedReader> reader_;
};

/// An uninitialized tensor of the recorded shape and type; `path` is for messages. RunError for a type that LibTorch
/// has not.
at::Tensor new_tensor(const artifact::TensorBytes& bytes, const std::string& path);

/// safetensors' name for the tensor's type, "" when it has none.
std::string dtype_word(const at::Tensor& tensor);

}  // namespace runner::checkpoint

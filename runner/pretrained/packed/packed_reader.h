#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runner/artifact/safetensors_header.h"
#include "runner/artifact/tensor_set.h"
#include "runner/core/result.h"
#include "runner/pretrained/packed/packed_weight.h"

namespace runner::pretrained {

/// The tensors of a file or of shards. What bitsandbytes made of a weight, `X.weight` and up to five tensors beside it,
/// is one of them: with the shape of W, packed_word() as its type and the bytes of all as its pieces.
class PackedReader final : public artifact::TensorList {
 public:
  /// RunError (exit status 2) names `path` and the weight of which a tensor is missing, too much or damaged, or which
  /// is kept in a way that roux does not read.
  PackedReader(std::unique_ptr<artifact::SafetensorsReader> file, const std::string& path);
  /// Of artifact::open_tensors().
  static core::Result<std::unique_ptr<PackedReader>> open(
      const std::string& path, const artifact::OpenTensors& open = &artifact::open_tensor_file);

  /// By the name of its weight; null for any other tensor.
  const PackedWeight* packed(const std::string& name) const;
  bool has_packed() const { return !packed_.empty(); }

  void let_go(const void* data, std::int64_t bytes) const override { file_->let_go(data, bytes); }
  std::optional<artifact::FilePlace> place_of(const void* data) const override { return file_->place_of(data); }

 private:
  std::unique_ptr<artifact::SafetensorsReader> file_;
  std::map<std::string, PackedWeight> packed_;
};

}  // namespace runner::pretrained

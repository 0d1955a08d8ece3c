#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runner/core/node.h"
#include "runner/pretrained/folder_writer.h"
#include "runner/pretrained/model_type.h"
#include "runner/pretrained/packed/pack.h"

namespace runner::pretrained {

/// Packs the linear layers in the blocks of a model that is written, as bitsandbytes does in Transformers: without the
/// head, the embeddings and what the type keeps.
class Packer {
 public:
  /// config    of the model
  /// skip      layers that keep their type, a list of names as in `llm_int8_skip_modules`; null: none
  /// products  the type that Transformers is to multiply by 4 bits in: `float32`
  Packer(const ModelType& type, const core::Node& config, const PackForm& form, const core::Node* skip = nullptr,
         std::string products = "float32");

  /// Whether it is a weight of such a layer.
  bool packs(const artifact::TensorBytes& tensor) const;
  /// By Transformers' names: each packed weight as the tensors that it is made of, others with floating numbers in
  /// `dtype`, as it is where that is "". Reads all weights; the codes are made again as they are written.
  /// Errors  RunError (exit status 2): a layer with rows of an odd length.
  std::vector<WrittenTensor> packed(const std::vector<WrittenTensor>& tensors, const std::string& dtype);

  /// |packed - weights| / |weights| over all that were packed.
  double relative_error() const;
  /// The quantization_config of the model.
  core::Node config_field() const;

 private:
  void pack_one(const WrittenTensor& tensor, std::vector<WrittenTensor>& all);

  const ModelType& type_;
  PackForm form_;
  std::set<std::string> layers_;  ///< by Transformers' names
  std::vector<std::string> skip_;
  std::string products_;
  double error_ = 0, size_ = 0;  ///< sums of squares
};

}  // namespace runner::pretrained

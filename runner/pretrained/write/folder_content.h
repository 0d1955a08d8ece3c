#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runner/core/node.h"
#include "runner/pretrained/folder_writer.h"
#include "runner/pretrained/model_type.h"
#include "runner/pretrained/packed/packed_reader.h"

namespace runner::pretrained {

/// What a folder of Transformers holds, under the names that the class of its head saves. Without what roux computes
/// itself, and without the head where it is the embedding; of weights in fewer bits what they stand for, in F32.
class FolderContent {
 public:
  /// RunError (exit status 2): a configuration or weights that are missing, damaged or not read.
  explicit FolderContent(const std::string& folder);

  const std::vector<WrittenTensor>& tensors() const { return tensors_; }  ///< live as long as this
  const core::Node& config() const { return config_; }                    ///< checked
  const ModelType& type() const { return *type_; }

 private:
  core::Node config_;
  const ModelType* type_ = nullptr;
  std::unique_ptr<PackedReader> reader_;
  std::vector<WrittenTensor> tensors_;
};

}  // namespace runner::pretrained

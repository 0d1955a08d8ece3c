#include "runner/pretrained/write/folder_content.h"

#include <algorithm>
#include <utility>

#include "runner/artifact/tensor_set.h"
#include "runner/core/error.h"
#include "runner/pretrained/adapter_file.h"
#include "runner/pretrained/config.h"
#include "runner/pretrained/facts.h"
#include "runner/pretrained/packed/quantization_config.h"
#include "runner/pretrained/write/merge.h"
#include "runner/pretrained/write/quantized_weights.h"

namespace runner::pretrained {
namespace {

bool is_weight(const ModelType& type, const std::string& name) {
  return std::any_of(type.weights.begin(), type.weights.end(), [&name](const WeightRule& rule) {
    return std::any_of(rule.from.begin(), rule.from.end(),
                       [&name](const std::string& from) { return number_in(from, name).has_value(); });
  });
}

}  // namespace

FolderContent::FolderContent(const std::string& folder) {
  core::Diagnostics diagnostics;
  auto config = read_config(config_of_folder(folder), diagnostics);
  if (!config) {
    const core::Failure failure = first_error(diagnostics);
    throw core::RunError(failure.message, failure.hint, core::kExitUsage);
  }
  config_ = *std::move(config);
  config_.erase(kQuantizationConfig);
  type_ = &model_type_of_config(config_);
  const std::string set = artifact::find_tensor_set(folder).value();
  artifact::verify_tensor_set(set).value();
  reader_ = PackedReader::open(set).value();
  const WeightRule* head = Facts(*type_, config_).flag("tied") ? type_->rule_of("head.weight") : nullptr;
  for (const artifact::TensorBytes& tensor : reader_->tensors()) {
    const std::string name = type_->own_name(tensor.name);
    const PackedWeight* packed = reader_->packed(tensor.name);
    WrittenTensor named = packed != nullptr ? unpacked(name, *packed, is_turned(*type_, name)) : WrittenTensor{tensor};
    named.bytes.name = name;
    const bool is_copy = head != nullptr && head->from.front() == named.bytes.name;
    if (is_weight(*type_, named.bytes.name) && !is_copy) tensors_.push_back(std::move(named));
  }
}

}  // namespace runner::pretrained

#include "components/tensor/tensor_spec.h"

#include <algorithm>

#include "components/tensor/positions.h"
#include "runner/core/error.h"
#include "runner/core/text/text.h"

namespace components {

const char* to_text(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat32: return "float32";
    case Dtype::kInt64: return "int64";
    case Dtype::kBool: return "bool";
    case Dtype::kInt32: return "int32";
    case Dtype::kUInt8: return "uint8";
    case Dtype::kBFloat16: return "bfloat16";
    case Dtype::kFloat16: return "float16";
  }
  return "";
}

std::int64_t element_size(Dtype dtype) {
  switch (dtype) {
    case Dtype::kInt64: return 8;
    case Dtype::kFloat32:
    case Dtype::kInt32: return 4;
    case Dtype::kBFloat16:
    case Dtype::kFloat16: return 2;
    case Dtype::kBool:
    case Dtype::kUInt8: return 1;
  }
  return 0;
}

bool is_floating(Dtype dtype) {
  return dtype == Dtype::kFloat32 || dtype == Dtype::kBFloat16 || dtype == Dtype::kFloat16;
}

std::string to_text(const TensorSpec& port) {
  std::string text = std::string(to_text(port.dtype)) + " [";
  for (std::size_t i = 0; i < port.shape.size(); ++i) {
    if (i > 0) text += ", ";
    switch (port.shape[i]) {
      case kBatch: text += "batch"; break;
      case kTime: text += "time"; break;
      default: text += std::to_string(port.shape[i]);
    }
  }
  return text + "]";
}

double elements(const TensorSpec& port, std::int64_t samples) {
  double count = 1.0;
  for (const std::int64_t size : port.shape) {
    count *= static_cast<double>(size == kBatch ? samples : size == kTime ? port.max_length : size);
  }
  return count;
}

const TensorSpec* find_spec(const std::vector<TensorSpec>& specs, std::string_view name) {
  const auto found =
      std::find_if(specs.begin(), specs.end(), [name](const TensorSpec& spec) { return spec.name == name; });
  return found != specs.end() ? &*found : nullptr;
}

const TensorSpec* BatchSpec::find(std::string_view name) const { return find_spec(tensors, name); }

TensorSpec* BatchSpec::find(std::string_view name) {
  return const_cast<TensorSpec*>(find_spec(tensors, name));  // tensors is not const here
}

const TensorSpec& BatchSpec::at(std::string_view name) const {
  const TensorSpec* spec = find(name);
  RUNNER_ASSERT(spec != nullptr, "names are checked when model and loss are built");
  return *spec;
}

std::int64_t BatchSpec::max_length() const {
  const TensorSpec* input = find(kInput);
  return input != nullptr ? input->max_length : 0;
}

std::int64_t BatchSpec::longest_sequence() const {
  const TensorSpec* positions = find(kPositions);
  return positions != nullptr ? positions->max_length : max_length();
}

bool BatchSpec::padded() const {
  return std::any_of(tensors.begin(), tensors.end(), [](const TensorSpec& spec) { return spec.padded; });
}

std::string names_of(const std::vector<TensorSpec>& specs) {
  return runner::core::joined(specs, ", ", [](const TensorSpec& spec) { return spec.name; });
}

}  // namespace components

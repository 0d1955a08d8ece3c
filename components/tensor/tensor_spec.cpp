#include "components/tensor/tensor_spec.h"

namespace components {

std::string to_text(const TensorSpec& port) {
  std::string text = port.dtype == Dtype::kInt64 ? "int64 [" : "float32 [";
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

double elements(const TensorSpec& port, std::int64_t samples, std::int64_t positions) {
  double count = 1.0;
  for (const std::int64_t size : port.shape) {
    count *= static_cast<double>(size == kBatch ? samples : size == kTime ? positions : size);
  }
  return count;
}

}  // namespace components

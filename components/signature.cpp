#include "components/signature.h"

namespace components {

std::string to_text(const Port& port) {
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

}  // namespace components

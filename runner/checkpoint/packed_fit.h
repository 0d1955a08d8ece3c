#pragma once

#include <string>
#include <vector>

namespace components::part {
class Product;
}
namespace runner::pretrained {
struct PackedWeight;
}

namespace runner::checkpoint {

/// Why weights that a file has in fewer bits cannot become those of a quantized layer, bit for bit; "" when they can.
/// Null stands for one that the file has in another type.
///
/// names  of the weights in the file
std::string why_not_packed(const components::part::Product& layer,
                           const std::vector<const pretrained::PackedWeight*>& weights,
                           const std::vector<std::string>& names);

}  // namespace runner::checkpoint

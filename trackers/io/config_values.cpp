#include "trackers/io/config_values.h"

namespace trackers {
namespace {

using runner::core::Node;

void collect(const std::string& path, const Node& node, std::vector<std::pair<std::string, Node>>& values) {
  const auto below = [&path](const std::string& key) { return path.empty() ? key : path + "." + key; };
  if (node.is_mapping()) {
    for (const auto& entry : node.entries()) collect(below(entry.key), entry.value, values);
  } else if (node.is_sequence()) {
    for (std::size_t i = 0; i < node.items().size(); ++i) collect(below(std::to_string(i)), node.items()[i], values);
  } else if (!node.is_null()) {
    values.emplace_back(path, node);
  }
}

}  // namespace

std::vector<std::pair<std::string, Node>> config_values(const Node& config) {
  std::vector<std::pair<std::string, Node>> values;
  collect("", config, values);
  return values;
}

}  // namespace trackers

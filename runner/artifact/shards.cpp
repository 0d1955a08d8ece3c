#include "runner/artifact/shards.h"

#include <cstdio>
#include <map>

#include "runner/artifact/tensor_set.h"
#include "runner/core/node.h"

namespace runner::artifact {
namespace {

using core::Node;

std::string shard_name(std::size_t number, std::size_t count) {
  char name[64];
  std::snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", number, count);
  return name;
}

std::string index_text(const std::map<std::string, std::string>& file_of, std::int64_t bytes) {
  Node metadata = Node::mapping();
  metadata.set("total_size", Node::integer(bytes));
  Node weights = Node::mapping();
  for (const auto& [tensor, file] : file_of) weights.set(tensor, Node::string(file));
  Node index = Node::mapping();
  index.set("metadata", std::move(metadata));
  index.set("weight_map", std::move(weights));
  return core::to_json(index) + "\n";
}

}  // namespace

ShardPlan plan_shards(const std::vector<std::pair<std::string, std::int64_t>>& tensors, std::int64_t shard_bytes_max) {
  ShardPlan plan;
  ShardPlan::File open;
  std::int64_t open_bytes = 0, all_bytes = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::int64_t bytes = tensors[i].second;
    all_bytes += bytes;
    if (bytes > shard_bytes_max) {
      plan.files.push_back({"", {i}});
      continue;
    }
    if (open_bytes + bytes > shard_bytes_max) {
      plan.files.push_back(std::exchange(open, {}));
      open_bytes = 0;
    }
    open.tensors.push_back(i);
    open_bytes += bytes;
  }
  if (!open.tensors.empty() || plan.files.empty()) plan.files.push_back(std::move(open));
  if (plan.files.size() == 1) {
    plan.files[0].name = kModelFile;
    return plan;
  }
  std::map<std::string, std::string> file_of;
  for (std::size_t i = 0; i < plan.files.size(); ++i) {
    plan.files[i].name = shard_name(i + 1, plan.files.size());
    for (const std::size_t tensor : plan.files[i].tensors) file_of[tensors[tensor].first] = plan.files[i].name;
  }
  plan.index = index_text(file_of, all_bytes);
  return plan;
}

}  // namespace runner::artifact

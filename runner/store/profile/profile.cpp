#include "runner/store/profile/profile.h"

#include <utility>

#include "runner/core/error.h"
#include "runner/core/fields.h"
#include "runner/core/json.h"
#include "runner/core/platform/files.h"

namespace runner::store {
namespace {

using core::Fields;
using core::Node;

constexpr std::int64_t kFileBytesMax = 256 << 20;

// Keys of the GPU are there where something of it was recorded.

Node row_node(const ProfileRow& row, bool with_cuda) {
  Node node = Node::mapping();
  node.set("name", Node::string(row.name));
  node.set("input_shapes", Node::string(row.shapes));
  node.set("is_range", Node::boolean(row.is_range));
  node.set("count", Node::integer(row.calls));
  node.set("cpu_time_total", Node::floating(row.cpu_us));
  node.set("self_cpu_time_total", Node::floating(row.self_cpu_us));
  node.set("cpu_memory_usage", Node::integer(row.cpu_bytes));
  node.set("self_cpu_memory_usage", Node::integer(row.self_cpu_bytes));
  node.set("flops", Node::integer(row.flops));
  if (!with_cuda) return node;
  node.set("is_kernel", Node::boolean(row.is_kernel));
  node.set("cuda_time_total", Node::floating(row.cuda_us));
  node.set("self_cuda_time_total", Node::floating(row.self_cuda_us));
  node.set("cuda_memory_usage", Node::integer(row.cuda_bytes));
  node.set("self_cuda_memory_usage", Node::integer(row.self_cuda_bytes));
  return node;
}

ProfileRow row_of(const Node& node, bool with_cuda) {
  const Fields fields(node, "the profile's key_averages");
  ProfileRow row;
  row.name = fields.text("name");
  row.shapes = fields.text("input_shapes");
  row.is_range = fields.boolean("is_range");
  row.calls = fields.integer("count");
  row.cpu_us = fields.number("cpu_time_total");
  row.self_cpu_us = fields.number("self_cpu_time_total");
  row.cpu_bytes = fields.integer("cpu_memory_usage");
  row.self_cpu_bytes = fields.integer("self_cpu_memory_usage");
  row.flops = fields.integer("flops");
  if (!with_cuda) return row;
  row.is_kernel = fields.boolean("is_kernel");
  row.cuda_us = fields.number("cuda_time_total");
  row.self_cuda_us = fields.number("self_cuda_time_total");
  row.cuda_bytes = fields.integer("cuda_memory_usage");
  row.self_cuda_bytes = fields.integer("self_cuda_memory_usage");
  return row;
}

ProfileBlock block_of(const Node& node, bool with_cuda) {
  const Fields fields(node, "the profile's blocks");
  ProfileBlock block;
  block.name = fields.text("name");
  block.calls = fields.integer("count");
  block.forward_us = fields.number("forward_us");
  block.backward_us = fields.number("backward_us");
  block.kept_bytes = fields.integer("kept_bytes");
  if (!with_cuda) return block;
  block.forward_cuda_us = fields.number("forward_cuda_us");
  block.backward_cuda_us = fields.number("backward_cuda_us");
  return block;
}

Node table_node(const ProfileTable& table) {
  Node node = Node::mapping();
  node.set("sort_by", Node::string(table.sort_by));
  node.set("row_limit", Node::integer(table.row_limit));
  node.set("group_by_input_shape", Node::boolean(table.group_by_input_shape));
  return node;
}

Profile profile_of(const Node& node) {
  const Fields fields(node, "the profile");
  Profile profile;
  profile.trace = fields.text("trace");
  profile.with_shapes = fields.boolean("record_shapes");
  profile.with_memory = fields.boolean("profile_memory");
  profile.with_flops = fields.boolean("with_flops");
  profile.with_cuda = node.find("cuda") != nullptr && fields.boolean("cuda");
  profile.model_flops = fields.number("model_flops");
  profile.peak_flops = fields.number("peak_flops");
  profile.peak_of = fields.text("peak_of");
  for (const Node& item : fields.list("steps")) {
    const Fields step(item, "the profile's steps");
    profile.steps.push_back({step.integer("step"), step.number("us"), step.integer("peak_bytes")});
  }
  for (const Node& item : fields.list("blocks")) {
    profile.blocks.push_back(block_of(item, profile.with_cuda));
  }
  for (const Node& item : fields.list("key_averages")) profile.rows.push_back(row_of(item, profile.with_cuda));
  for (const Node& item : fields.list("memory")) {
    const bool is_pair = item.items().size() == 2 && item.items()[0].is_number() && item.items()[1].is_integer();
    if (!is_pair) fields.refuse("memory");
    profile.memory.push_back({item.items()[0].as_double(), item.items()[1].as_integer()});
  }
  const Fields table(fields.mapping("table"), "the profile's table");
  profile.table.sort_by = table.text("sort_by");
  profile.table.row_limit = table.integer("row_limit");
  profile.table.group_by_input_shape = table.boolean("group_by_input_shape");
  return profile;
}

}  // namespace

double Profile::total_us() const {
  double us = 0;
  for (const ProfileStep& step : steps) us += step.us;
  return us;
}

double Profile::total_cuda_us() const {
  double us = 0;
  for (const ProfileRow& row : rows) {
    if (row.is_kernel) us += row.self_cuda_us;
  }
  return us;
}

Node to_node(const Profile& profile) {
  Node node = Node::mapping();
  node.set("trace", Node::string(profile.trace));
  node.set("record_shapes", Node::boolean(profile.with_shapes));
  node.set("profile_memory", Node::boolean(profile.with_memory));
  node.set("with_flops", Node::boolean(profile.with_flops));
  if (profile.with_cuda) node.set("cuda", Node::boolean(true));
  node.set("model_flops", Node::floating(profile.model_flops));
  node.set("peak_flops", Node::floating(profile.peak_flops));
  node.set("peak_of", Node::string(profile.peak_of));
  node.set("table", table_node(profile.table));
  Node steps = Node::sequence(), blocks = Node::sequence(), rows = Node::sequence(), memory = Node::sequence();
  for (const ProfileStep& step : profile.steps) {
    Node one = Node::mapping();
    one.set("step", Node::integer(step.step));
    one.set("us", Node::floating(step.us));
    one.set("peak_bytes", Node::integer(step.peak_bytes));
    steps.items().push_back(std::move(one));
  }
  for (const ProfileBlock& block : profile.blocks) {
    Node one = Node::mapping();
    one.set("name", Node::string(block.name));
    one.set("count", Node::integer(block.calls));
    one.set("forward_us", Node::floating(block.forward_us));
    one.set("backward_us", Node::floating(block.backward_us));
    one.set("kept_bytes", Node::integer(block.kept_bytes));
    if (profile.with_cuda) {
      one.set("forward_cuda_us", Node::floating(block.forward_cuda_us));
      one.set("backward_cuda_us", Node::floating(block.backward_cuda_us));
    }
    blocks.items().push_back(std::move(one));
  }
  for (const ProfileRow& row : profile.rows) rows.items().push_back(row_node(row, profile.with_cuda));
  for (const MemoryPoint& point : profile.memory) {
    memory.items().push_back(Node::sequence({Node::floating(point.ms), Node::integer(point.bytes)}));
  }
  node.set("steps", std::move(steps));
  node.set("blocks", std::move(blocks));
  node.set("key_averages", std::move(rows));
  node.set("memory", std::move(memory));
  return node;
}

core::Result<Profile> profile_from_node(const Node& node) {
  return core::attempt([&] { return profile_of(node); });
}

core::Result<Profile> read_profile(const std::string& path) {
  const auto text = core::read_file(path, kFileBytesMax);
  if (!text) return text.failure();
  const auto node = core::parse_json(text.value());
  if (!node) return core::Failure{path + ": " + node.failure().message, node.failure().hint};
  auto profile = profile_from_node(node.value());
  if (!profile) return core::Failure{path + ": " + profile.failure().message, profile.failure().hint};
  return profile;
}

}  // namespace runner::store

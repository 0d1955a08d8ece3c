#include "components/data/mix/mix_mark.h"

#include <string>

#include "runner/core/error.h"

namespace components::data {
namespace {

using runner::core::Node;

[[noreturn]] void throw_damaged(const std::string& key) {
  throw runner::core::RunError("the checkpoint's trainer.json has no valid \"data_stream." + key + "\"");
}

std::int64_t integer(const Node* value, const char* key) {
  if (value == nullptr || !value->is_integer() || value->as_integer() < 0) throw_damaged(key);
  return value->as_integer();
}

const std::vector<Node>& list(const Node& node, const char* key, std::size_t size) {
  const Node* value = node.find(key);
  if (value == nullptr || !value->is_sequence() || value->items().size() != size) throw_damaged(key);
  return value->items();
}

Node node_of(const std::vector<std::int64_t>& numbers) {
  Node node = Node::sequence();
  for (const std::int64_t number : numbers) node.items().push_back(Node::integer(number));
  return node;
}

std::vector<std::int64_t> integers(const Node& node, const char* key, std::size_t size) {
  std::vector<std::int64_t> numbers;
  for (const Node& item : list(node, key, size)) numbers.push_back(integer(&item, key));
  return numbers;
}

}  // namespace

Node MixMark::to_node() const {
  Node node = Node::mapping();
  node.set("sample", Node::integer(position));
  node.set("pass", Node::integer(pass));
  node.set("taken", node_of(taken));
  node.set("begun", node_of(begun));
  Node marks = Node::sequence();
  for (const auto& set : sets) marks.items().push_back(set->to_node());
  node.set("sets", std::move(marks));
  return node;
}

MixMark MixMark::of(const Node& node, std::span<const std::unique_ptr<Stream>> streams) {
  MixMark mark;
  mark.position = integer(node.find("sample"), "sample");
  mark.pass = integer(node.find("pass"), "pass");
  mark.taken = integers(node, "taken", streams.size());
  mark.begun = integers(node, "begun", streams.size());
  const std::vector<Node>& marks = list(node, "sets", streams.size());
  for (std::size_t i = 0; i < streams.size(); ++i) mark.sets.push_back(streams[i]->mark_of(marks[i]));
  return mark;
}

}  // namespace components::data

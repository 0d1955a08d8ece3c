#include "runner/launch/messages.h"

#include <utility>

namespace runner::launch {
namespace {

using core::Node;

Node message_of(const char* what, Node content) {
  Node node = Node::mapping();
  node.set(what, std::move(content));
  return node;
}

int integer(const Node& node, const char* key) { return static_cast<int>(node.find(key)->as_integer()); }
const std::string& text(const Node& node, const char* key) { return node.find(key)->as_string(); }

}  // namespace

Node message(const Hello& hello) {
  Node node = Node::mapping();
  node.set("program", Node::string(hello.program));
  node.set("host", Node::string(hello.host));
  node.set("rank", hello.rank ? Node::integer(*hello.rank) : Node::null());
  node.set("num_processes", Node::integer(hello.num_processes));
  node.set("num_machines", Node::integer(hello.num_machines));
  return message_of("hello", std::move(node));
}

std::optional<Hello> hello_of(const Node& message) {
  const Node* node = message.find("hello");
  if (node == nullptr) return std::nullopt;
  Hello hello;
  hello.program = text(*node, "program");
  hello.host = text(*node, "host");
  if (!node->find("rank")->is_null()) hello.rank = integer(*node, "rank");
  hello.num_processes = integer(*node, "num_processes");
  hello.num_machines = integer(*node, "num_machines");
  return hello;
}

Node message(const Start& start) {
  const RankAssignment& assignment = start.assignment;
  Node node = Node::mapping();
  node.set("first_rank", Node::integer(assignment.first_rank));
  node.set("local_size", Node::integer(assignment.local_size));
  node.set("world_size", Node::integer(assignment.world_size));
  node.set("machines", Node::integer(assignment.machines));
  node.set("life", Node::integer(assignment.restart_count));
  node.set("run_dir", Node::string(assignment.run_dir));
  node.set("store_port", Node::integer(start.store_port));
  return message_of("start", std::move(node));
}

std::optional<Start> start_of(const Node& message) {
  const Node* node = message.find("start");
  if (node == nullptr) return std::nullopt;
  Start start;
  start.assignment.first_rank = integer(*node, "first_rank");
  start.assignment.local_size = integer(*node, "local_size");
  start.assignment.world_size = integer(*node, "world_size");
  start.assignment.machines = integer(*node, "machines");
  start.assignment.restart_count = integer(*node, "life");
  start.assignment.run_dir = text(*node, "run_dir");
  start.store_port = static_cast<std::uint16_t>(integer(*node, "store_port"));
  return start;
}

Node message(const RankEnd& end) { return message_of("rank_end", to_node(end)); }

std::optional<RankEnd> rank_end_in(const Node& message) {
  const Node* node = message.find("rank_end");
  if (node == nullptr) return std::nullopt;
  return rank_end_of(*node);
}

Node message(const LaunchEnd& end) {
  Node node = Node::mapping();
  node.set("status", Node::integer(end.status));
  node.set("message", Node::string(end.message));
  node.set("hint", Node::string(end.hint));
  return message_of("end", std::move(node));
}

std::optional<LaunchEnd> end_of(const Node& message) {
  const Node* node = message.find("end");
  if (node == nullptr) return std::nullopt;
  return LaunchEnd{integer(*node, "status"), text(*node, "message"), text(*node, "hint")};
}

Node stop_message() { return message_of("stop", Node::mapping()); }

bool is_stop(const Node& message) { return message.find("stop") != nullptr; }

Node end_expected_message() { return message_of("end_expected", Node::mapping()); }

bool is_end_expected(const Node& message) { return message.find("end_expected") != nullptr; }

}  // namespace runner::launch

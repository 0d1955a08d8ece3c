#include "runner/cli/data/tokenize_state.h"

#include <filesystem>
#include <utility>

#include "runner/artifact/io/checksum.h"
#include "runner/core/error.h"

namespace runner::cli {
namespace {

using core::Node;

std::string checksum_or_throw(const std::string& path) {
  auto checksum = artifact::checksum_of_file(path);
  if (!checksum) throw core::RunError(checksum.failure().message, checksum.failure().hint);
  return std::move(checksum).value();
}

template <typename Items, typename ToNode>
Node list(const Items& items, ToNode to_node) {
  std::vector<Node> nodes;
  for (const auto& item : items) nodes.push_back(to_node(item));
  return Node::sequence(std::move(nodes));
}

/// Reads members of a mapping; what is not there, or of another type, is an error of the file.
class Members {
 public:
  Members(const Node& node, const std::string& file) : node_(node), file_(file) {}

  std::int64_t integer(const char* key) const {
    const Node* value = node_.find(key);
    if (value == nullptr || !value->is_integer() || value->as_integer() < 0) damaged(key);
    return value->as_integer();
  }
  std::string text(const char* key) const {
    const Node* value = node_.find(key);
    if (value == nullptr || !value->is_string()) damaged(key);
    return value->as_string();
  }
  /// That may lack: false.
  bool flag(const char* key) const {
    const Node* value = node_.find(key);
    return value != nullptr && value->kind() == Node::Kind::kBool && value->as_bool();
  }
  const Node& sequence(const char* key) const {
    const Node* value = node_.find(key);
    if (value == nullptr || !value->is_sequence()) damaged(key);
    return *value;
  }

 private:
  [[noreturn]] void damaged(const char* key) const {
    throw core::RunError(file_ + " is damaged: its \"" + key + "\" cannot be read",
                         "add --force to tokenize everything again");
  }

  const Node& node_;
  const std::string& file_;
};

}  // namespace

Node settings_of(const TokenizeRequest& request, const components::tokenizer::Tokenizer& tokenizer) {
  const auto& about = tokenizer.description();
  std::string checksum = checksum_or_throw(about.path);
  const std::filesystem::path merges = std::filesystem::path(about.path).replace_filename("merges.txt");
  std::error_code ignored;
  if (about.format.find("merges") != std::string::npos && std::filesystem::exists(merges, ignored)) {
    checksum += " " + checksum_or_throw(merges.string());
  }
  Node settings = Node::mapping();
  settings.set("tokenizer", Node::string(checksum));
  settings.set("dtype", Node::string(request.layout.dtype()));
  settings.set("header_bytes", Node::integer(request.layout.header_bytes()));
  settings.set("vocab_size", Node::integer(tokenizer.id_limit()));
  settings.set("append_eos", request.append_eos ? Node::integer(tokenizer.special().eos.value_or(0)) : Node::null());
  settings.set("column", Node::string(request.column));
  settings.set("shard_tokens", request.shard_tokens ? Node::integer(*request.shard_tokens) : Node::null());
  settings.set("inputs", list(request.inputs, [](const std::string& path) { return Node::string(path); }));
  return settings;
}

Node to_node(const TokenizeState& state, const Node& settings) {
  Node node = Node::mapping();
  node.set("settings", settings);
  node.set("documents", Node::integer(state.counts.documents));
  node.set("tokens", Node::integer(state.counts.tokens));
  node.set("bytes", Node::integer(state.counts.bytes));
  node.set("shards", list(state.shards, [](std::int64_t tokens) { return Node::integer(tokens); }));
  node.set("tokens_in_part", Node::integer(state.tokens_in_part));
  if (state.is_whole) node.set("whole", Node::boolean(true));
  if (state.replaces) node.set("replaces", Node::boolean(true));
  node.set("file", Node::integer(static_cast<std::int64_t>(state.place.file)));
  node.set("line", Node::integer(state.place.line));
  node.set("checksum", Node::string(state.place.checksum));
  node.set("input_states", list(state.inputs, [](const FileState& input) {
             Node pair = Node::mapping();
             pair.set("bytes", Node::integer(input.bytes));
             pair.set("modified_ns", Node::integer(input.modified_ns));
             return pair;
           }));
  return node;
}

TokenizeState read_state(const Node& node, const std::string& file) {
  const Members members(node, file);
  TokenizeState state;
  state.counts = {members.integer("documents"), members.integer("tokens"), members.integer("bytes")};
  for (const Node& shard : members.sequence("shards").items()) {
    state.shards.push_back(shard.is_integer() ? shard.as_integer() : 0);
  }
  state.tokens_in_part = members.integer("tokens_in_part");
  state.is_whole = members.flag("whole");
  state.replaces = members.flag("replaces");
  state.place = {static_cast<std::size_t>(members.integer("file")), members.integer("line"), members.text("checksum")};
  for (const Node& input : members.sequence("input_states").items()) {
    const Members of_input(input, file);
    state.inputs.push_back({of_input.integer("bytes"), of_input.integer("modified_ns")});
  }
  return state;
}

std::string difference(const Node& ours, const Node& theirs) {
  for (const Node::Entry& entry : ours.entries()) {
    const Node* other = theirs.find(entry.key);
    if (other == nullptr || core::to_json(*other) != core::to_json(entry.value)) return entry.key;
  }
  return "";
}

}  // namespace runner::cli

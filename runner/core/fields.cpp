#include "runner/core/fields.h"

#include "runner/core/error.h"

namespace runner::core {

std::int64_t Fields::integer(const char* key) const { return at(key, &Node::is_integer).as_integer(); }
double Fields::number(const char* key) const { return at(key, &Node::is_number).as_double(); }
bool Fields::boolean(const char* key) const { return at(key, &Node::is_bool).as_bool(); }
const std::string& Fields::text(const char* key) const { return at(key, &Node::is_string).as_string(); }
const std::vector<Node>& Fields::list(const char* key) const { return at(key, &Node::is_sequence).items(); }
const Node& Fields::mapping(const char* key) const { return at(key, &Node::is_mapping); }

void Fields::refuse(const char* key) const { throw RunError(path_ + " has no usable \"" + key + "\""); }

const Node& Fields::at(const char* key, bool (Node::*is)() const) const {
  const Node* value = node_.find(key);
  if (value == nullptr || !(value->*is)()) refuse(key);
  return *value;
}

}  // namespace runner::core

#include "components/tokenizer/text/fields.h"

#include "components/tokenizer/text/unicode.h"
#include "runner/core/text/utf8.h"

namespace components::tokenizer {

using runner::core::Node;

std::string Fields::field(std::string_view key) const {
  if (key.empty()) return field_;
  return field_.empty() ? std::string(key) : field_ + "." + std::string(key);
}

std::string Fields::place(std::string_view key) const {
  const std::string name = field(key);
  return name.empty() ? file_ : file_ + ": " + name;
}

runner::core::RunError Fields::error(std::string_view key, const std::string& what, const std::string& hint) const {
  const std::string name = field(key);
  return runner::core::RunError(file_ + ": " + (name.empty() ? "it" : name) + " " + what, hint);
}

const Node* Fields::find(std::string_view key) const {
  const Node* node = node_->find(key);
  return node == nullptr || node->is_null() ? nullptr : node;
}

std::optional<std::string> Fields::text_or_none(std::string_view key) const {
  const Node* node = find(key);
  if (node == nullptr) return std::nullopt;
  if (!node->is_string()) throw error(key, "is not a string");
  return node->as_string();
}

std::string Fields::text(std::string_view key, const std::string& otherwise) const {
  return text_or_none(key).value_or(otherwise);
}

std::string Fields::text(std::string_view key) const {
  const auto found = text_or_none(key);
  if (!found) throw error(key, "is missing");
  return *found;
}

bool Fields::flag(std::string_view key, bool otherwise) const {
  const Node* node = find(key);
  if (node == nullptr) return otherwise;
  if (!node->is_bool()) throw error(key, "is neither true nor false");
  return node->as_bool();
}

std::int64_t Fields::integer(std::string_view key, std::int64_t least, std::int64_t most) const {
  const Node* node = find(key);
  if (node == nullptr) throw error(key, "is missing");
  if (!node->is_integer() || node->as_integer() < least || node->as_integer() > most) {
    throw error(key, "is not an integer from " + std::to_string(least) + " to " + std::to_string(most));
  }
  return node->as_integer();
}

char32_t Fields::character(std::string_view key) const {
  const std::string found = text(key);
  if (found.empty() || found.size() != utf8_size(found[0])) {
    throw error(key, "is not one character, but " + runner::core::quote(found));
  }
  return code_point_at(found, 0).value;
}

Fields Fields::object(std::string_view key) const {
  const Node* node = find(key);
  if (node == nullptr) throw error(key, "is missing");
  return {*node, file_, field(key)};
}

std::vector<Fields> Fields::objects(std::string_view key) const {
  const Node* node = find(key);
  if (node == nullptr) throw error(key, "is missing");
  if (!node->is_sequence()) throw error(key, "is not a list");
  std::vector<Fields> all;
  for (std::size_t i = 0; i < node->items().size(); ++i) {
    all.emplace_back(node->items()[i], file_, field(key) + "[" + std::to_string(i) + "]");
  }
  return all;
}

}  // namespace components::tokenizer

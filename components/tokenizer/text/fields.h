#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runner/core/error.h"
#include "runner/core/node.h"

namespace components::tokenizer {

/// A JSON object of a tokenizer's file, with its place for messages: `tokenizer.json: pre_tokenizer.pretokenizers[0]`.
/// Fields that nothing asks for are left alone, as the `tokenizers` library leaves them. Everything throws RunError
/// that names file and field.
class Fields {
 public:
  Fields(const runner::core::Node& node, std::string file, std::string field)
      : node_(&node), file_(std::move(file)), field_(std::move(field)) {
    if (!node.is_mapping()) throw error("", "is not an object");
  }

  /// An error at a field; "" is the object itself.
  runner::core::RunError error(std::string_view key, const std::string& what, const std::string& hint = "") const;

  bool has(std::string_view key) const { return find(key) != nullptr; }
  /// Null is as if the field was not there.
  std::string text(std::string_view key) const;
  std::string text(std::string_view key, const std::string& otherwise) const;
  std::optional<std::string> text_or_none(std::string_view key) const;
  bool flag(std::string_view key, bool otherwise) const;
  std::int64_t integer(std::string_view key, std::int64_t least, std::int64_t most) const;
  /// One character.
  char32_t character(std::string_view key) const;
  Fields object(std::string_view key) const;
  std::vector<Fields> objects(std::string_view key) const;
  const runner::core::Node* find(std::string_view key) const;

  const runner::core::Node& node() const { return *node_; }
  const std::string& file() const { return file_; }
  std::string place(std::string_view key) const;

 private:
  std::string field(std::string_view key) const;

  const runner::core::Node* node_;
  std::string file_, field_;
};

}  // namespace components::tokenizer

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runner/core/node.h"

namespace runner::words {

/// A recipe in the making.
class Draft {
 public:
  /// Sets a key of the recipe: `seed`, `section.key`, `data.train.packing`, and `adapters[lora].r` of the block of that
  /// type in a list, which is added where it is not there.
  void put(std::string_view path, core::Node value);
  /// Null where it is not set.
  const core::Node* find(std::string_view path);
  /// As recipes are usually written, the model first.
  core::Node ordered() const;

 private:
  core::Node recipe_ = core::Node::mapping();
};

/// A folder that is here, or OWNER/NAME as a name of the Hub.
std::string model_path(const std::string& name);

/// The items of a list, or of a text between its commas.
std::vector<core::Node> items_of(const core::Node& value);

/// False for null, `false`, an empty text, list or mapping: of no effect in most configurations.
bool asks_for_something(const core::Node& value);

}  // namespace runner::words

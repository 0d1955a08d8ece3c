#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "runner/core/node.h"
#include "runner/core/units.h"

// Building blocks of the generated parsers (generated/base/configs_*.cpp). All take validated values: a wrong one is a
// bug in roux, so they assert. Only the file of a secret can fail.

namespace runner::registry {

bool read_boolean(const core::Node& node);
std::int64_t read_integer(const core::Node& node);
double read_number(const core::Node& node);
std::string read_text(const core::Node& node);
/// A secret as its text, or as `{file: PATH}`: then the file's content without the line end that follows it. RunError
/// when the file cannot be read or is empty; no message holds any of its content.
std::string read_secret(const core::Node& node);
core::Interval read_interval(const core::Node& node);
double read_duration_s(const core::Node& node);
std::int64_t read_bytes(const core::Node& node);
inline core::Node read_node(const core::Node& node) { return node; }

/// The value of a key that has no default; asserts that it is there.
const core::Node& required(const core::Node& block, const char* key);
/// The value of a key, or null where the Config's own default stands: the key is absent or null.
const core::Node* given(const core::Node& block, const char* key);
/// `type:` of a component's block, or the block itself where it is a bare name.
const std::string& type_of(const core::Node& block);
/// No make() of this kind has that name, which validation has ruled out.
[[noreturn]] void no_such_component(const char* kind, const std::string& name);

/// A list; one value alone counts as a list of one (`x-single`).
template <typename Read>
auto read_list(const core::Node& node, Read read) {
  std::vector<std::decay_t<decltype(read(node))>> values;
  if (!node.is_sequence()) {
    values.push_back(read(node));
    return values;
  }
  values.reserve(node.items().size());
  for (const core::Node& item : node.items()) values.push_back(read(item));
  return values;
}

template <typename Read>
auto read_map(const core::Node& node, Read read) {
  std::vector<std::pair<std::string, std::decay_t<decltype(read(node))>>> values;
  for (const core::Node::Entry& entry : node.entries()) values.emplace_back(entry.key, read(entry.value));
  return values;
}

}  // namespace runner::registry

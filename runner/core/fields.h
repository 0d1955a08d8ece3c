#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runner/core/node.h"

namespace runner::core {

/// Reads the fields of a mapping that a program wrote: a manifest, a provenance, a profile.
///
/// Errors    RunError `PATH has no usable "KEY"` for a field that is missing or of another kind.
/// The node must outlive this; lists and mappings are returned by reference.
class Fields {
 public:
  /// `path` names the source in messages: a file, or "the profile's steps".
  Fields(const Node& node, std::string path) : node_(node), path_(std::move(path)) {}

  std::int64_t integer(const char* key) const;
  double number(const char* key) const;
  bool boolean(const char* key) const;
  const std::string& text(const char* key) const;
  const std::vector<Node>& list(const char* key) const;
  const Node& mapping(const char* key) const;

  [[noreturn]] void refuse(const char* key) const;

 private:
  const Node& at(const char* key, bool (Node::*is)() const) const;

  const Node& node_;
  std::string path_;
};

}  // namespace runner::core

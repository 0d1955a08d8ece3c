#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "runner/core/location.h"
#include "runner/core/node.h"

namespace runner::recipe {

/// Finds the key that a message is about. Reads each file once.
class KeyFinder {
 public:
  /// `training.max_steps` for the location of its key or value in a file, or of a `--set` of it. For the first key of a
  /// block it is the key of the block, as both have one location. "" if the location has no key: a whole file, its
  /// first key, a file that cannot be read, Jsonnet, another flag.
  std::string key_at(const core::Location& location);

 private:
  std::map<std::shared_ptr<const core::Source>, std::optional<core::Node>> roots_;
};

}  // namespace runner::recipe

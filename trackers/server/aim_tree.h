#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runner/core/node.h"

namespace trackers {

/// Values for Aim's server: a list of paths with their contents.
class AimTree {
 public:
  static std::string key(std::string_view name);
  static std::string key(std::int64_t index);

  /// `path`: keys, one after the other; "" is the root.
  AimTree& add(const std::string& path, const runner::core::Node& value);
  /// Begins an object of a type of Aim's own, as `aim.image`; what is in it is added below `path`.
  AimTree& add_object(const std::string& path, std::string_view type);
  /// Large contents, which Aim reads only when they are asked for.
  AimTree& add_text(const std::string& path, std::string_view text);
  AimTree& add_bytes(const std::string& path, std::string_view bytes);

  const std::string& bytes() const { return bytes_; }

 private:
  void put(const std::string& path, bool is_large, char type, std::string_view content);

  std::string bytes_;
};

/// The hash by which Aim finds a step or a context: of an integer, a text, a list or a mapping of these.
std::int64_t aim_hash(const runner::core::Node& value);

}  // namespace trackers

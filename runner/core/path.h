#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runner/core/result.h"

namespace runner::core {

/// One step of a path into a recipe: a key of a mapping, or a position in a list.
struct PathStep {
  std::string key;
  std::int64_t index = -1;  ///< From 0; negative when this step is a key.

  bool is_index() const { return index >= 0; }
};

/// Parses `training.max_steps`, `model.layers[2].p`, `data["my.set"].path`, where `\"` is a quote. The Failure names
/// the error in the path.
Result<std::vector<PathStep>> parse_path(std::string_view text);

/// The path as text; keys with dots or brackets are quoted.
std::string path_text(const std::vector<PathStep>& steps);
/// `path` and one more step: `a` + `b` is `a.b`, an empty path + `b` is `b`.
std::string join_path(std::string_view path, std::string_view key);
std::string join_path(std::string_view path, std::size_t index);

}  // namespace runner::core

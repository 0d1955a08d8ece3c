#pragma once

#include <cstddef>
#include <string>

namespace trackers {

/// A name as MLflow takes it for a metric, a parameter, a tag and below its artifacts: letters, digits, `_-.: ` and
/// slashes that would make a plain relative path, at most 250 characters. One that is another comes out with `_` in
/// place of what does not fit and its checksum at the end, so that two do not become the same.
std::string mlflow_name(const std::string& name);

/// At most `characters_max` of them, whole ones; MLflow would cut by itself and say nothing.
std::string cut(const std::string& text, std::size_t characters_max);

}  // namespace trackers

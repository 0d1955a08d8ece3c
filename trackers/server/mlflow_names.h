#pragma once

#include <cstddef>
#include <string>

namespace trackers {

/// A name as MLflow accepts it for a metric, a parameter, a tag and below its artifacts: letters, digits, `_-.: ` and
/// slashes that would make a plain relative path, at most 250 characters. Any other name gets `_` for invalid
/// characters and its checksum at the end, so that names stay distinct.
std::string mlflow_name(const std::string& name);

/// At most `characters_max`, without splitting one; MLflow would truncate silently.
std::string cut(const std::string& text, std::size_t characters_max);

}  // namespace trackers

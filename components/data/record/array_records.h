#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "components/data/record/record_source.h"

namespace components::data {

/// The elements of a file that is one JSON array, as texts: each may take several lines, and all of them may lie in
/// one. A place is in front of an element, which begins in the line behind its `lines`. RunError: the array is cut
/// short, or something stands behind it.
std::unique_ptr<RecordSource> array_records(const std::string& path, const RecordSource::Place& start);

/// Whether a file begins with an array of objects or an empty one, behind a byte order mark or none. Another array may
/// be a line that is no record.
bool is_json_array(const std::string& path);

}  // namespace components::data

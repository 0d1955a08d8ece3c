#pragma once

#include <arrow/status.h>

#include <new>
#include <string>
#include <utility>

#include "runner/core/result.h"
#include "runner/core/table/table_file.h"

namespace runner::arrow_files {

/// A failure of Arrow in a file. `place`: the file, or the file and its rows.
core::Failure failure_at(const std::string& place, const arrow::Status& status, const core::TableLimits& limits);

/// Runs `body`, whose result is a core::Result, and makes a failure of what Arrow throws.
template <typename Body>
auto guarded(const std::string& place, const core::TableLimits& limits, Body body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return failure_at(place, arrow::Status::OutOfMemory(""), limits);
  } catch (const std::exception& error) {
    return failure_at(place, arrow::Status::Invalid(error.what()), limits);
  }
}

}  // namespace runner::arrow_files

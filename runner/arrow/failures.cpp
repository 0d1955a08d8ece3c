#include "runner/arrow/failures.h"

#include "runner/core/units.h"

namespace runner::arrow_files {
namespace {

/// The first line: Arrow adds where in its own source it was.
std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

core::Failure failure_at(const std::string& place, const arrow::Status& status, const core::TableLimits& limits) {
  if (status.IsOutOfMemory()) {
    return {place + ": rows that lie together take more than " + core::format_bytes(limits.bytes_max) +
                ", half of the memory of this machine",
            "write the file with fewer rows in a group or record batch"};
  }
  if (status.IsNotImplemented()) {
    return {place + ": not supported: " + first_line(status.message()),
            "write the file with another codec or type, such as zstd and string"};
  }
  return {place + ": damaged: " + first_line(status.message()), "fetch or write the file again"};
}

}  // namespace runner::arrow_files

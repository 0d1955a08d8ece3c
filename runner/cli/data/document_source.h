#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "runner/core/result.h"

namespace runner::cli {

/// The texts of a file of many: those of the field `column` in lines of JSON, or in the rows of a Parquet or Arrow
/// file.
class DocumentSource {
 public:
  /// RunError: the file cannot be read, or is a table whose rows have no such text.
  static std::unique_ptr<DocumentSource> open(const std::string& path, const std::string& column);

  virtual ~DocumentSource() = default;
  /// What the next line or row says, until the next call; nothing at the end of the file. RunError names the file, and
  /// the line where there is one, of what cannot be read.
  virtual std::optional<std::string_view> next() = 0;
  /// The text of that; nothing: the line is blank.
  virtual std::optional<core::Result<std::string>> text() const = 0;
  virtual std::int64_t number() const = 0;  ///< of that, from 1
};

}  // namespace runner::cli

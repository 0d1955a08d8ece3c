#pragma once

#include <arrow/io/file.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runner/core/table/table_file.h"

namespace runner::arrow_files {

/// A message of Arrow's IPC format in a file.
struct IpcMessage {
  enum class Kind { kSchema, kDictionary, kBatch };
  Kind kind = Kind::kSchema;
  std::int64_t begin = 0, end = 0;  ///< in the file
  std::int64_t rows = 0;            ///< of a record batch, as it says
};

/// The messages of an IPC stream, or of an IPC file, which is a stream between magic numbers with an index behind it.
/// Reads what describes them and not their bodies, which lie in the file. Failure names the file and what is wrong.
core::Result<std::vector<IpcMessage>> ipc_messages(const std::string& path, arrow::io::ReadableFile& file, bool is_file,
                                                   const core::TableLimits& limits);

}  // namespace runner::arrow_files

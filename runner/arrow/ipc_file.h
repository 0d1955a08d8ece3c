#pragma once

#include <arrow/io/file.h>

#include <memory>
#include <string>

#include "runner/core/table/table_file.h"

namespace runner::arrow_files {

/// A file of Arrow's IPC format: `is_file`, or a stream, as the `datasets` library writes.
core::Result<std::unique_ptr<core::TableFile>> open_ipc(const std::string& path,
                                                        std::shared_ptr<arrow::io::ReadableFile> file, bool is_file,
                                                        const core::TableLimits& limits);

}  // namespace runner::arrow_files

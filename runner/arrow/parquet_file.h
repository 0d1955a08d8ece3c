#pragma once

#include <arrow/io/file.h>

#include <memory>
#include <string>

#include "runner/core/table/table_file.h"

namespace runner::arrow_files {

/// A file whose first bytes are Parquet's.
core::Result<std::unique_ptr<core::TableFile>> open_parquet(const std::string& path,
                                                            std::shared_ptr<arrow::io::ReadableFile> file,
                                                            const core::TableLimits& limits);

}  // namespace runner::arrow_files

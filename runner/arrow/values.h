#pragma once

#include <arrow/array/array_base.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runner/core/table/table_file.h"

namespace runner::arrow_files {

/// Columns as the schema names them. Failure without a place: a name that comes twice, a type nested too deeply, no
/// column at all.
core::Result<std::vector<core::TableColumn>> columns_of(const arrow::Schema& schema);

/// The rows of a batch that was validated.
std::unique_ptr<core::TableRows> rows_of(std::shared_ptr<arrow::RecordBatch> batch, std::int64_t first);

}  // namespace runner::arrow_files

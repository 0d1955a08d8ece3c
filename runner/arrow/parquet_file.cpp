#include "runner/arrow/parquet_file.h"

#include <arrow/record_batch.h>
#include <arrow/util/compression.h>
#include <parquet/arrow/reader.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>
#include <parquet/properties.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "runner/arrow/failures.h"
#include "runner/arrow/limited_pool.h"
#include "runner/arrow/values.h"
#include "runner/core/units.h"

namespace runner::arrow_files {
namespace {

using core::Failure;
using core::Result;

constexpr std::int64_t kTailBytes = 8;  ///< the length of the footer, and the magic number
constexpr std::int64_t kTogetherBytes = 16 << 20, kTogetherRows = 4096;  ///< that next() aims at
constexpr std::int64_t kBufferBytes = 1 << 20;                           ///< read ahead of each column

/// What has to hold before the footer is read.
Result<void> check_tail(const std::string& path, arrow::io::ReadableFile& file) {
  const auto size = file.GetSize();
  std::array<char, kTailBytes> tail{};
  const auto read = *size < 2 * kTailBytes ? arrow::Result<std::int64_t>(0)
                                           : file.ReadAt(*size - kTailBytes, kTailBytes, tail.data());
  if (!read.ok()) return Failure{path + ": " + read.status().message(), ""};
  const std::string_view magic(tail.data() + 4, 4);
  if (magic == "PARE") return Failure{path + " is encrypted, and roux has no key", "write it without encryption"};
  if (magic != "PAR1") return Failure{path + " is cut short: a Parquet file ends with PAR1", "fetch or write it again"};
  std::uint32_t length = 0;
  std::memcpy(&length, tail.data(), sizeof(length));
  if (length > *size - kTailBytes - 4) {
    return Failure{path + " is damaged: its footer has " + core::format_bytes(length) + ", and the file has " +
                       core::format_bytes(*size),
                   "fetch or write it again"};
  }
  if (length > core::TableLimits::kFooterBytesMax) {
    return Failure{path + ": the footer has " + core::format_bytes(length) + ", more than " +
                       core::format_bytes(core::TableLimits::kFooterBytesMax),
                   "write it as several files, or with larger row groups"};
  }
  return {};
}

class ParquetFile final : public core::TableFile {
 public:
  ParquetFile(std::string path, const core::TableLimits& limits)
      : path_(std::move(path)), limits_(limits), pool_(limits.bytes_max) {}

  Result<void> open(std::shared_ptr<arrow::io::ReadableFile> file) {
    if (const auto good = check_tail(path_, *file); !good) return good;
    parquet::ReaderProperties reading(pool_.get());
    reading.enable_buffered_stream();  // pages, not whole columns of a group
    reading.set_buffer_size(kBufferBytes);
    reading.set_schema_depth_limit(core::TableLimits::kDepthMax);
    reading.set_page_checksum_verification(true);
    parquet::arrow::FileReaderBuilder builder;
    if (const auto status = builder.Open(std::move(file), reading); !status.ok()) return at(path_, status);
    const parquet::FileMetaData& metadata = *builder.raw_reader()->metadata();
    if (metadata.is_encryption_algorithm_set()) {
      return Failure{path_ + " has encrypted columns, and roux has no key", "write it without encryption"};
    }
    parquet::ArrowReaderProperties converting(/*use_threads=*/false);
    converting.set_pre_buffer(false);
    builder.memory_pool(pool_.get())->properties(converting);
    if (const auto status = builder.Build(&reader_); !status.ok()) return at(path_, status);
    reader_->set_use_threads(false);
    if (const auto good = read_groups(*reader_->parquet_reader()->metadata()); !good) return good;
    std::shared_ptr<arrow::Schema> schema;
    if (const auto status = reader_->GetSchema(&schema); !status.ok()) return at(path_, status);
    auto columns = columns_of(*schema);
    if (!columns) return Failure{path_ + " " + columns.failure().message, columns.failure().hint};
    columns_ = std::move(columns).value();
    choose_leaves({});
    return {};
  }

  const std::vector<core::TableColumn>& columns() const override { return columns_; }
  const std::vector<core::TableGroup>& groups() const override { return groups_; }
  std::int64_t rows() const override { return rows_; }

  Result<void> choose(const std::vector<std::string>& names) override {
    for (const std::string& name : names) {
      const bool is_there =
          std::any_of(columns_.begin(), columns_.end(), [&](const auto& it) { return it.name == name; });
      if (!is_there) return Failure{path_ + " has no column \"" + name + "\"", ""};
    }
    choose_leaves({names.begin(), names.end()});
    batches_.reset();
    return {};
  }

  void go_to(std::int64_t row) override {
    row_ = row;
    batches_.reset();
    rows_together_ = 0;
  }

  Result<std::unique_ptr<core::TableRows>> next() override {
    return guarded(place(), limits_, [&] { return read_next(); });
  }

 private:
  Failure at(const std::string& place, const arrow::Status& status) const { return failure_at(place, status, limits_); }
  std::string place() const { return path_ + ", from row " + std::to_string(row_ + 1) + " on"; }

  Result<void> read_groups(const parquet::FileMetaData& metadata) {
    for (int i = 0; i < metadata.num_row_groups(); ++i) {
      const auto group = metadata.RowGroup(i);
      if (group->num_rows() < 0 || group->num_rows() > core::TableLimits::kRowsMax - rows_ ||
          group->total_byte_size() < 0) {
        return Failure{path_ + " is damaged: row group " + std::to_string(i + 1) + " has " +
                           std::to_string(group->num_rows()) + " rows of " + std::to_string(group->total_byte_size()) +
                           " bytes",
                       "fetch or write it again"};
      }
      for (int column = 0; column < group->num_columns(); ++column) {
        const auto codec = group->ColumnChunk(column)->compression();
        if (codec == arrow::Compression::UNCOMPRESSED || arrow::util::Codec::IsAvailable(codec)) continue;
        return Failure{path_ + ": column \"" + metadata.schema()->Column(column)->path()->ToDotString() +
                           "\" is compressed with a codec that is not supported, " +
                           arrow::util::Codec::GetCodecAsString(codec),
                       "write it with zstd, snappy or gzip"};
      }
      groups_.push_back({group->num_rows(), group->total_byte_size()});
      rows_ += group->num_rows();
    }
    return {};
  }

  /// The leaves of these columns; of all, where there are none.
  void choose_leaves(const std::set<std::string>& names) {
    leaves_.clear();
    const parquet::SchemaDescriptor& schema = *reader_->parquet_reader()->metadata()->schema();
    for (int leaf = 0; leaf < schema.num_columns(); ++leaf) {
      if (names.empty() || names.contains(schema.GetColumnRoot(leaf)->name())) leaves_.push_back(leaf);
    }
  }

  /// Rows of some megabytes, if the groups are what they say.
  std::int64_t suitable_rows() const {
    std::int64_t together = kTogetherRows;
    for (const core::TableGroup& group : groups_) {
      if (group.rows == 0) continue;
      together = std::min(together, kTogetherBytes / std::max<std::int64_t>(1, group.bytes / group.rows));
    }
    return std::max<std::int64_t>(1, together);
  }

  /// Reads from the group of row_ on.
  Result<void> begin() {
    if (rows_together_ == 0) rows_together_ = suitable_rows();
    std::int64_t first = 0;
    std::size_t group = 0;
    while (group < groups_.size() && first + groups_[group].rows <= row_) first += groups_[group++].rows;
    std::vector<int> rest;
    for (; group < groups_.size(); ++group) rest.push_back(static_cast<int>(group));
    reader_->set_batch_size(rows_together_);
    auto batches = reader_->GetRecordBatchReader(rest, leaves_);
    if (!batches.ok()) return at(place(), batches.status());
    batches_ = std::move(*batches);
    at_ = first;
    return {};
  }

  Result<std::unique_ptr<core::TableRows>> read_next() {
    while (row_ < rows_) {
      if (batches_ == nullptr) {
        if (const auto begun = begin(); !begun) return begun.failure();
      }
      std::shared_ptr<arrow::RecordBatch> batch;
      arrow::Status status = batches_->ReadNext(&batch);
      if (status.ok() && batch != nullptr) status = batch->ValidateFull();
      if (status.IsOutOfMemory() && rows_together_ > 1) {
        // A dictionary or runs of the same value unpack to more than the footer says.
        batches_.reset();
        rows_together_ = std::max<std::int64_t>(1, rows_together_ / 64);
        continue;
      }
      if (!status.ok()) return at(place(), status);
      if (batch == nullptr) {
        return at(place(), arrow::Status::Invalid("the footer says that there are " + std::to_string(rows_) + " rows"));
      }
      const std::int64_t first = std::exchange(at_, at_ + batch->num_rows());
      if (at_ <= row_) continue;
      const std::int64_t skipped = row_ - first;
      row_ = at_;
      return rows_of(skipped == 0 ? batch : batch->Slice(skipped), first + skipped);
    }
    return std::unique_ptr<core::TableRows>();
  }

  std::string path_;
  core::TableLimits limits_;
  LimitedPool pool_;  // outlives what is read
  std::unique_ptr<parquet::arrow::FileReader> reader_;
  std::vector<core::TableColumn> columns_;
  std::vector<core::TableGroup> groups_;
  std::vector<int> leaves_;
  std::int64_t rows_ = 0;
  std::int64_t row_ = 0;                               // the next one to be returned
  std::unique_ptr<arrow::RecordBatchReader> batches_;  // null: opened where row_ is, when it is needed
  std::int64_t at_ = 0;                                // the row that batches_ has next
  std::int64_t rows_together_ = 0;
};

}  // namespace

Result<std::unique_ptr<core::TableFile>> open_parquet(const std::string& path,
                                                      std::shared_ptr<arrow::io::ReadableFile> file,
                                                      const core::TableLimits& limits) {
  auto opened = std::make_unique<ParquetFile>(path, limits);
  if (const auto good = opened->open(std::move(file)); !good) return good.failure();
  return std::unique_ptr<core::TableFile>(std::move(opened));
}

}  // namespace runner::arrow_files

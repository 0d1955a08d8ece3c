#include "runner/arrow/ipc_file.h"

#include <arrow/buffer.h>
#include <arrow/io/interfaces.h>
#include <arrow/ipc/reader.h>
#include <arrow/record_batch.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "runner/arrow/failures.h"
#include "runner/arrow/ipc_messages.h"
#include "runner/arrow/limited_pool.h"
#include "runner/arrow/values.h"

namespace runner::arrow_files {
namespace {

using core::Failure;
using core::Result;

/// Messages of a file as a stream of their own.
class Spliced final : public arrow::io::InputStream {
 public:
  Spliced(std::shared_ptr<arrow::io::ReadableFile> file, std::vector<IpcMessage> messages, arrow::MemoryPool* pool)
      : file_(std::move(file)), messages_(std::move(messages)), pool_(pool) {}

  arrow::Status Close() override {
    closed_ = true;
    return arrow::Status::OK();
  }
  bool closed() const override { return closed_; }
  arrow::Result<std::int64_t> Tell() const override { return told_; }

  arrow::Result<std::int64_t> Read(std::int64_t bytes, void* to) override {
    std::int64_t read = 0;
    while (read < bytes && message_ < messages_.size()) {
      const IpcMessage& message = messages_[message_];
      const std::int64_t count = std::min(bytes - read, message.end - message.begin - in_message_);
      ARROW_ASSIGN_OR_RAISE(const std::int64_t got,
                            file_->ReadAt(message.begin + in_message_, count, static_cast<char*>(to) + read));
      read += got;
      in_message_ += got;
      if (got < count) break;  // the file is shorter than it was
      if (in_message_ < message.end - message.begin) continue;
      ++message_;
      in_message_ = 0;
    }
    told_ += read;
    return read;
  }

  arrow::Result<std::shared_ptr<arrow::Buffer>> Read(std::int64_t bytes) override {
    ARROW_ASSIGN_OR_RAISE(auto buffer, arrow::AllocateResizableBuffer(bytes, pool_));
    ARROW_ASSIGN_OR_RAISE(const std::int64_t read, Read(bytes, buffer->mutable_data()));
    if (read < bytes) ARROW_RETURN_NOT_OK(buffer->Resize(read));
    return std::shared_ptr<arrow::Buffer>(std::move(buffer));
  }

 private:
  std::shared_ptr<arrow::io::ReadableFile> file_;
  std::vector<IpcMessage> messages_;
  arrow::MemoryPool* pool_;
  std::size_t message_ = 0;
  std::int64_t in_message_ = 0, told_ = 0;
  bool closed_ = false;
};

class IpcFile final : public core::TableFile {
 public:
  IpcFile(std::string path, const core::TableLimits& limits)
      : path_(std::move(path)), limits_(limits), pool_(limits.bytes_max) {}

  Result<void> open(std::shared_ptr<arrow::io::ReadableFile> file, bool is_file) {
    file_ = std::move(file);
    auto messages = ipc_messages(path_, *file_, is_file, limits_);
    if (!messages) return messages.failure();
    messages_ = std::move(messages).value();
    // An index of an IPC file may name dictionaries behind the batches that use them.
    if (is_file) {
      std::stable_partition(messages_.begin(), messages_.end(),
                            [](const IpcMessage& it) { return it.kind != IpcMessage::Kind::kBatch; });
    }
    for (const IpcMessage& message : messages_) {
      if (message.kind != IpcMessage::Kind::kBatch) continue;
      groups_.push_back({message.rows, message.end - message.begin});
      rows_ += message.rows;
    }
    if (const auto begun = begin(); !begun) return begun;
    auto columns = columns_of(*reader_->schema());
    if (!columns) return Failure{path_ + " " + columns.failure().message, columns.failure().hint};
    columns_ = std::move(columns).value();
    return {};
  }

  const std::vector<core::TableColumn>& columns() const override { return columns_; }
  const std::vector<core::TableGroup>& groups() const override { return groups_; }
  std::int64_t rows() const override { return rows_; }

  Result<void> choose(const std::vector<std::string>& names) override {
    std::vector<int> fields;
    for (const std::string& name : names) {
      const auto at = std::find_if(columns_.begin(), columns_.end(), [&](const auto& it) { return it.name == name; });
      if (at == columns_.end()) return Failure{path_ + " has no column \"" + name + "\"", ""};
      fields.push_back(static_cast<int>(at - columns_.begin()));
    }
    std::sort(fields.begin(), fields.end());
    fields_ = std::move(fields);
    reader_.reset();
    return {};
  }

  void go_to(std::int64_t row) override {
    row_ = row;
    reader_.reset();
  }

  Result<std::unique_ptr<core::TableRows>> next() override {
    return guarded(place(), limits_, [&] { return read_next(); });
  }

 private:
  Failure at(const std::string& place, const arrow::Status& status) const { return failure_at(place, status, limits_); }
  std::string place() const { return path_ + ", from row " + std::to_string(row_ + 1) + " on"; }

  /// Reads the batch of row_ next: what precedes it without the other batches, and all that follows.
  Result<void> begin() {
    std::vector<IpcMessage> wanted;
    std::int64_t first = 0;
    bool reached = false;
    for (const IpcMessage& message : messages_) {
      const bool is_batch = message.kind == IpcMessage::Kind::kBatch;
      reached = reached || (is_batch && row_ < first + message.rows);
      if (!is_batch || reached)
        wanted.push_back(message);
      else
        first += message.rows;
    }
    arrow::ipc::IpcReadOptions options;
    options.memory_pool = pool_.get();
    options.use_threads = false;
    options.included_fields = fields_;
    auto reader = arrow::ipc::RecordBatchStreamReader::Open(
        std::make_shared<Spliced>(file_, std::move(wanted), pool_.get()), options);
    if (!reader.ok()) return at(path_, reader.status());
    reader_ = std::move(*reader);
    at_ = first;
    return {};
  }

  Result<std::unique_ptr<core::TableRows>> read_next() {
    while (row_ < rows_) {
      if (reader_ == nullptr) {
        if (const auto begun = begin(); !begun) return begun.failure();
      }
      std::shared_ptr<arrow::RecordBatch> batch;
      arrow::Status status = reader_->ReadNext(&batch);
      if (status.ok() && batch != nullptr) status = batch->ValidateFull();
      if (!status.ok()) return at(place(), status);
      if (batch == nullptr) return at(place(), arrow::Status::Invalid("the file is shorter than it was"));
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
  std::shared_ptr<arrow::io::ReadableFile> file_;
  std::vector<IpcMessage> messages_;
  std::vector<core::TableColumn> columns_;
  std::vector<core::TableGroup> groups_;
  std::vector<int> fields_;  // that are read; none: all
  std::int64_t rows_ = 0;
  std::int64_t row_ = 0;                              // the next one to be returned
  std::shared_ptr<arrow::RecordBatchReader> reader_;  // null: opened where row_ is, when it is needed
  std::int64_t at_ = 0;                               // the row that reader_ has next
};

}  // namespace

Result<std::unique_ptr<core::TableFile>> open_ipc(const std::string& path,
                                                  std::shared_ptr<arrow::io::ReadableFile> file, bool is_file,
                                                  const core::TableLimits& limits) {
  auto opened = std::make_unique<IpcFile>(path, limits);
  if (const auto good = opened->open(std::move(file), is_file); !good) return good.failure();
  return std::unique_ptr<core::TableFile>(std::move(opened));
}

}  // namespace runner::arrow_files

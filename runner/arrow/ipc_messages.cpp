#include "runner/arrow/ipc_messages.h"

#include <arrow/buffer.h>
#include <arrow/ipc/message.h>

#include <array>
#include <cstring>
#include <optional>
#include <string_view>

#include "runner/core/units.h"

namespace runner::arrow_files {
namespace {

using core::Failure;
using core::Result;

constexpr std::string_view kFileMagic = "ARROW1";
constexpr std::int64_t kFileHead = 8;   ///< the magic number, padded
constexpr std::int64_t kFileTail = 10;  ///< the length of the index, and the magic number
constexpr std::uint32_t kContinuation = 0xffffffffU;
constexpr std::int64_t kPrefix = 8;  ///< the continuation mark, and the length of what follows

/// Fields of a table of Flatbuffers, of a buffer that was verified; what lies outside of it is nothing all the same.
class FlatTable {
 public:
  static std::optional<FlatTable> root(std::string_view buffer) { return referred(buffer, 0); }

  std::optional<FlatTable> table(int slot) const {
    const auto at = place(slot);
    return at ? referred(buffer_, *at) : std::nullopt;
  }

  /// 0 where it is left out, as the format has it.
  std::int64_t integer(int slot) const {
    const auto at = place(slot);
    return at ? read<std::int64_t>(buffer_, *at).value_or(0) : 0;
  }

 private:
  FlatTable(std::string_view buffer, std::int64_t at) : buffer_(buffer), at_(at) {}

  template <typename Number>
  static std::optional<Number> read(std::string_view buffer, std::int64_t at) {
    if (at < 0 || at + static_cast<std::int64_t>(sizeof(Number)) > static_cast<std::int64_t>(buffer.size())) return {};
    Number value{};
    std::memcpy(&value, buffer.data() + at, sizeof(Number));
    return value;
  }

  static std::optional<FlatTable> referred(std::string_view buffer, std::int64_t at) {
    const auto offset = read<std::uint32_t>(buffer, at);
    if (!offset) return std::nullopt;
    return FlatTable(buffer, at + *offset);
  }

  std::optional<std::int64_t> place(int slot) const {
    const auto back = read<std::int32_t>(buffer_, at_);
    if (!back) return std::nullopt;
    const std::int64_t fields = at_ - *back;
    const auto size = read<std::uint16_t>(buffer_, fields);
    const std::int64_t entry = 4 + 2 * std::int64_t{slot};
    if (!size || entry + 2 > *size) return std::nullopt;
    const auto offset = read<std::uint16_t>(buffer_, fields + entry);
    if (!offset || *offset == 0) return std::nullopt;
    return at_ + *offset;
  }

  std::string_view buffer_;
  std::int64_t at_;
};

/// Slots of Message and RecordBatch in Arrow's Message.fbs.
constexpr int kHeader = 2, kLength = 0;

std::int64_t rows_of_batch(std::string_view metadata) {
  const auto message = FlatTable::root(metadata);
  const auto header = message ? message->table(kHeader) : std::nullopt;
  return header ? header->integer(kLength) : 0;
}

class Walk {
 public:
  Walk(const std::string& path, arrow::io::ReadableFile& file, const core::TableLimits& limits)
      : path_(path), file_(file), limits_(limits) {}

  Result<std::vector<IpcMessage>> messages(bool is_file) {
    const auto size = file_.GetSize();
    if (!size.ok()) return Failure{path_ + ": " + size.status().message(), ""};
    end_ = *size;
    if (is_file) {
      at_ = kFileHead;
      if (const auto good = find_end(); !good) return good.failure();
    }
    while (at_ < end_) {
      auto more = read_message();
      if (!more) return more.failure();
      if (!more.value()) break;
    }
    if (messages_.empty()) return damaged("it has no schema");
    return std::move(messages_);
  }

 private:
  Failure damaged(const std::string& what) const {
    return {path_ + " is damaged at byte " + std::to_string(at_) + ": " + what, "fetch or write it again"};
  }
  Failure cut_short() const {
    return {path_ + " is cut short at byte " + std::to_string(end_), "fetch or write it again"};
  }

  template <typename Bytes>
  bool read(std::int64_t at, Bytes& bytes) {
    const auto count = file_.ReadAt(at, static_cast<std::int64_t>(bytes.size()), bytes.data());
    return count.ok() && *count == static_cast<std::int64_t>(bytes.size());
  }

  /// Where the index of an IPC file begins.
  Result<void> find_end() {
    std::array<char, kFileTail> tail{};
    if (end_ < kFileHead + kFileTail || !read(end_ - kFileTail, tail) ||
        std::string_view(tail.data() + 4, kFileMagic.size()) != kFileMagic) {
      return cut_short();
    }
    std::int32_t length = 0;
    std::memcpy(&length, tail.data(), sizeof(length));
    if (length < 0 || length > end_ - kFileHead - kFileTail) {
      return Failure{path_ + " is damaged: its index has " + std::to_string(length) + " bytes, and the file has " +
                         std::to_string(end_),
                     "fetch or write it again"};
    }
    end_ -= kFileTail + length;
    return {};
  }

  /// False at the end mark.
  Result<bool> read_message() {
    if (at_ + kPrefix > end_) return cut_short();
    std::array<char, kPrefix> prefix{};
    if (!read(at_, prefix)) return cut_short();
    std::uint32_t mark = 0;
    std::int32_t length = 0;
    std::memcpy(&mark, prefix.data(), sizeof(mark));
    std::memcpy(&length, prefix.data() + sizeof(mark), sizeof(length));
    if (mark != kContinuation) return damaged("no message of Arrow's IPC format begins there");
    if (length == 0) return false;
    if (length < 0) return damaged("a message of " + std::to_string(length) + " bytes");
    if (length > core::TableLimits::kFooterBytesMax) {
      return damaged("what describes a message has " + core::format_bytes(length) + ", more than " +
                     core::format_bytes(core::TableLimits::kFooterBytesMax));
    }
    if (length > end_ - at_ - kPrefix) return cut_short();
    metadata_.resize(static_cast<std::size_t>(length));
    if (!read(at_ + kPrefix, metadata_)) return cut_short();
    return add(at_ + kPrefix + length);
  }

  Result<bool> add(std::int64_t body) {
    const auto message = arrow::ipc::Message::Open(std::make_shared<arrow::Buffer>(metadata_), nullptr);
    if (!message.ok()) return damaged(message.status().message());
    const std::int64_t length = (*message)->body_length();
    if (length < 0) return damaged("a body of " + std::to_string(length) + " bytes");
    if (length > end_ - body) return cut_short();
    IpcMessage added{.begin = at_, .end = body + length};
    switch ((*message)->type()) {
      case arrow::ipc::MessageType::SCHEMA:
        if (!messages_.empty()) return damaged("a second schema");
        added.kind = IpcMessage::Kind::kSchema;
        break;
      case arrow::ipc::MessageType::DICTIONARY_BATCH: added.kind = IpcMessage::Kind::kDictionary; break;
      case arrow::ipc::MessageType::RECORD_BATCH:
        added.kind = IpcMessage::Kind::kBatch;
        added.rows = rows_of_batch(metadata_);
        break;
      default: return damaged("a tensor, not a table");
    }
    if (messages_.empty() && added.kind != IpcMessage::Kind::kSchema) return damaged("it does not begin with a schema");
    if (added.rows < 0 || added.rows > core::TableLimits::kRowsMax - rows_) {
      return damaged("a record batch of " + std::to_string(added.rows) + " rows");
    }
    if (length > limits_.bytes_max) {
      return Failure{path_ + ": a record batch has " + core::format_bytes(length) + ", more than " +
                         core::format_bytes(limits_.bytes_max) + ", half of the memory of this machine",
                     "write the file with fewer rows in a record batch"};
    }
    rows_ += added.rows;
    at_ = added.end;
    messages_.push_back(added);
    return true;
  }

  const std::string& path_;
  arrow::io::ReadableFile& file_;
  const core::TableLimits& limits_;
  std::int64_t at_ = 0, end_ = 0;
  std::int64_t rows_ = 0;
  std::string metadata_;
  std::vector<IpcMessage> messages_;
};

}  // namespace

Result<std::vector<IpcMessage>> ipc_messages(const std::string& path, arrow::io::ReadableFile& file, bool is_file,
                                             const core::TableLimits& limits) {
  return Walk(path, file, limits).messages(is_file);
}

}  // namespace runner::arrow_files

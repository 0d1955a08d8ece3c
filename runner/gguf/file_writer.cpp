#include "runner/gguf/file_writer.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "runner/core/platform/parallel.h"
#include "runner/gguf/blocks.h"

namespace runner::gguf {
namespace {

constexpr std::uint32_t kVersion = 3;
constexpr std::int64_t kElementsOfChunk = 1 << 20;

template <typename T>
void append(std::string& to, T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  to.append(bytes, sizeof value);
}

void append_text(std::string& to, std::string_view text) {
  append(to, static_cast<std::uint64_t>(text.size()));
  to += text;
}

std::int64_t aligned(std::int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

std::int64_t rows_of(const TensorToWrite& tensor) {
  std::int64_t rows = 1;
  for (std::size_t d = 0; d + 1 < tensor.shape.size(); ++d) rows *= tensor.shape[d];
  return rows;
}

std::int64_t bytes_of(const TensorToWrite& tensor) {
  return rows_of(tensor) * row_bytes(tensor.type, tensor.shape.back());
}

std::string head_of(const Values& values, const std::vector<TensorToWrite>& tensors) {
  std::string head(kMagic);
  append(head, kVersion);
  append(head, static_cast<std::uint64_t>(tensors.size()));
  append(head, values.count());
  head += values.bytes();
  std::int64_t offset = 0;
  for (const TensorToWrite& tensor : tensors) {
    append_text(head, tensor.name);
    append(head, static_cast<std::uint32_t>(tensor.shape.size()));
    for (auto size = tensor.shape.rbegin(); size != tensor.shape.rend(); ++size) {
      append(head, static_cast<std::uint64_t>(*size));
    }
    append(head, static_cast<std::uint32_t>(tensor.type));
    append(head, static_cast<std::uint64_t>(offset));
    offset += aligned(bytes_of(tensor));
  }
  head.resize(static_cast<std::size_t>(aligned(static_cast<std::int64_t>(head.size()))), '\0');
  return head;
}

/// Rows [first, first + count) as they lie in the file.
std::string encoded(const TensorToWrite& tensor, std::int64_t first, std::int64_t count) {
  const std::int64_t columns = tensor.shape.back(), bytes = row_bytes(tensor.type, columns);
  std::string made(static_cast<std::size_t>(count * bytes), '\0');
  const auto threads = std::max<std::size_t>(1, std::thread::hardware_concurrency());
  const std::int64_t parts = std::min<std::int64_t>(count, static_cast<std::int64_t>(threads));
  core::in_parallel(static_cast<std::size_t>(parts), threads, [&](std::size_t part) {
    const std::int64_t begin = count * static_cast<std::int64_t>(part) / parts;
    const std::int64_t end = count * (static_cast<std::int64_t>(part) + 1) / parts;
    std::vector<float> values(static_cast<std::size_t>((end - begin) * columns));
    tensor.fill(first + begin, end - begin, values.data());
    encode(tensor.type, values.data(), (end - begin) * columns, made.data() + begin * bytes);
  });
  return made;
}

}  // namespace

void Values::begin(std::string_view key, ValueType type) {
  ++count_;
  append_text(bytes_, key);
  append(bytes_, static_cast<std::uint32_t>(type));
}

void Values::begin_list(std::string_view key, ValueType type, std::size_t size) {
  begin(key, ValueType::kArray);
  append(bytes_, static_cast<std::uint32_t>(type));
  append(bytes_, static_cast<std::uint64_t>(size));
}

void Values::add(std::string_view key, std::string_view text) {
  begin(key, ValueType::kString);
  append_text(bytes_, text);
}

void Values::add(std::string_view key, bool value) {
  begin(key, ValueType::kBool);
  append(bytes_, static_cast<std::uint8_t>(value ? 1 : 0));
}

void Values::add_count(std::string_view key, std::int64_t value) {
  begin(key, ValueType::kU32);
  append(bytes_, static_cast<std::uint32_t>(value));
}

void Values::add_float(std::string_view key, double value) {
  begin(key, ValueType::kF32);
  append(bytes_, static_cast<float>(value));
}

void Values::add(std::string_view key, const std::vector<std::string>& texts) {
  begin_list(key, ValueType::kString, texts.size());
  for (const std::string& text : texts) append_text(bytes_, text);
}

void Values::add(std::string_view key, const std::vector<std::int32_t>& numbers) {
  begin_list(key, ValueType::kI32, numbers.size());
  for (const std::int32_t number : numbers) append(bytes_, number);
}

void Values::add(std::string_view key, const std::vector<float>& numbers) {
  begin_list(key, ValueType::kF32, numbers.size());
  for (const float number : numbers) append(bytes_, number);
}

std::int64_t data_bytes(const std::vector<TensorToWrite>& tensors) {
  std::int64_t bytes = 0;
  for (const TensorToWrite& tensor : tensors) bytes += aligned(bytes_of(tensor));
  return bytes;
}

std::int64_t write_file(artifact::Io& io, const std::string& path, const Values& values,
                        std::vector<TensorToWrite> tensors) {
  const std::string head = head_of(values, tensors);
  const int handle = io.create(path);
  const auto bytes = static_cast<std::int64_t>(head.size()) + data_bytes(tensors);
  try {
    io.allocate(handle, path, bytes);
    io.write(handle, path, head.data(), static_cast<std::int64_t>(head.size()));
    for (TensorToWrite& tensor : tensors) {
      const std::int64_t rows = rows_of(tensor), bytes_there = bytes_of(tensor);
      const std::int64_t chunk = std::max<std::int64_t>(1, kElementsOfChunk / tensor.shape.back());
      for (std::int64_t first = 0; first < rows; first += chunk) {
        const std::string part = encoded(tensor, first, std::min(chunk, rows - first));
        io.write(handle, path, part.data(), static_cast<std::int64_t>(part.size()));
      }
      const std::string rest(static_cast<std::size_t>(aligned(bytes_there) - bytes_there), '\0');
      io.write(handle, path, rest.data(), static_cast<std::int64_t>(rest.size()));
      tensor.fill = nullptr;
    }
    io.sync_file(handle, path);
  } catch (...) {
    io.close(handle, path);
    throw;
  }
  io.close(handle, path);
  return bytes;
}

}  // namespace runner::gguf

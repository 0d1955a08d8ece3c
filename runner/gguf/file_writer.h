#pragma once

#include <bit>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "runner/artifact/io/io.h"
#include "runner/gguf/format.h"

namespace runner::gguf {

/// A tensor to write. `fill` writes rows [first, first + count) as float32, one after the other.
struct TensorToWrite {
  std::string name;
  TensorType type = TensorType::kF32;
  std::vector<std::int64_t> shape;  ///< rows first
  std::function<void(std::int64_t first, std::int64_t count, float* to)> fill;
};

/// The values of a file, in the order in which they are added.
class Values {
 public:
  void add(std::string_view key, std::string_view text);
  void add(std::string_view key, const char* text) { add(key, std::string_view(text)); }
  void add(std::string_view key, bool value);
  void add_count(std::string_view key, std::int64_t value);  ///< of 32 bits
  void add_float(std::string_view key, double value);        ///< of 32 bits
  void add(std::string_view key, const std::vector<std::string>& texts);
  void add(std::string_view key, const std::vector<std::int32_t>& numbers);
  void add(std::string_view key, const std::vector<float>& numbers);

  std::uint64_t count() const { return count_; }
  const std::string& bytes() const { return bytes_; }

 private:
  void begin(std::string_view key, ValueType type);
  void begin_list(std::string_view key, ValueType type, std::size_t size);

  std::string bytes_;
  std::uint64_t count_ = 0;
};

/// Writes a new file from front to back and fsyncs it; bytes of the file. Matrices are converted on all processors,
/// some megabytes at a time, and let go one after the other. RunError as Io says.
std::int64_t write_file(artifact::Io& io, const std::string& path, const Values& values,
                        std::vector<TensorToWrite> tensors);

/// Bytes of the tensors' data.
std::int64_t data_bytes(const std::vector<TensorToWrite>& tensors);

}  // namespace runner::gguf

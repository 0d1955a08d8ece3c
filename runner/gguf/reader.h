#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runner/core/node.h"
#include "runner/core/result.h"
#include "runner/gguf/format.h"

namespace runner::gguf {

/// A tensor of a file, borrowed. `shape` as PyTorch has it, rows first: the file has it the other way round.
struct Tensor {
  std::string name;
  TensorType type = TensorType::kF32;
  std::vector<std::int64_t> shape;
  const char* data = nullptr;

  std::int64_t columns() const { return shape.empty() ? 1 : shape.back(); }
  std::int64_t rows() const;
};

/// A file in memory, its data read as they are touched.
class File {
 public:
  virtual ~File() = default;
  /// In the file's order.
  virtual const std::vector<Tensor>& tensors() const = 0;
  virtual const Tensor* find(std::string_view name) const = 0;
  /// Its values: a mapping of numbers, texts, booleans, and lists of one kind of these.
  virtual const core::Node& values() const = 0;
};

/// Failure names the file and what is wrong there: no GGUF, another version, big-endian, cut off, counts that the file
/// has no room for, tensors that overlap, lie outside or are named twice, a type that roux does not read.
core::Result<std::unique_ptr<File>> open(const std::string& path);

/// The same of bytes that outlive it; `name` is for messages.
core::Result<std::unique_ptr<File>> parse(std::string_view bytes, const std::string& name);

}  // namespace runner::gguf

#include "runner/artifact/torch_reader.h"

#include <cstring>
#include <deque>
#include <string_view>
#include <utility>
#include <vector>

#include "runner/artifact/foreign/torch_file.h"
#include "runner/artifact/io/io.h"
#include "runner/artifact/io/mapped_file.h"
#include "runner/artifact/safetensors_header.h"
#include "runner/core/error.h"
#include "runner/core/text/utf8.h"

namespace runner::artifact {
namespace {

bool is_row_major(const TorchTensor& tensor) {
  std::int64_t stride = 1;
  for (std::size_t axis = tensor.shape.size(); axis-- > 0; stride *= tensor.shape[axis]) {
    if (tensor.shape[axis] != 1 && tensor.strides[axis] != stride) return false;
  }
  return true;
}

/// Row by row, in row-major order. Not empty.
void gather(const TorchTensor& tensor, const char* from, char* to) {
  const std::size_t axes = tensor.shape.size();
  const auto item = static_cast<std::size_t>(tensor.item_bytes);
  const std::int64_t row = tensor.shape[axes - 1];
  const std::int64_t step = tensor.strides[axes - 1] * tensor.item_bytes;
  std::vector<std::int64_t> index(axes, 0);
  std::int64_t at = 0;  // of the row's first element
  while (true) {
    for (std::int64_t i = 0; i < row; ++i, to += item) std::memcpy(to, from + at + i * step, item);
    std::size_t axis = axes - 1;
    while (axis > 0) {
      --axis;
      at += tensor.strides[axis] * tensor.item_bytes;
      if (++index[axis] < tensor.shape[axis]) break;
      at -= tensor.shape[axis] * tensor.strides[axis] * tensor.item_bytes;
      index[axis] = 0;
      if (axis == 0) return;
    }
    if (axes == 1) return;
  }
}

class Reader final : public TensorList {
 public:
  explicit Reader(const std::string& path) : file_(path, "a PyTorch file") {
    const std::string_view file = file_.bytes();
    TorchTensors parsed = parse_torch_file(file, path);
    if (!parsed.key.empty()) metadata_.emplace_back(kStateDictKey, parsed.key);
    std::int64_t copied = 0;
    for (TorchTensor& tensor : parsed.tensors) {
      TensorBytes bytes{std::move(tensor.name), std::move(tensor.dtype), tensor.shape, nullptr, tensor.item_bytes};
      for (const std::int64_t size : tensor.shape) bytes.bytes *= size;
      bytes.data = file.data() + tensor.begin;
      if (bytes.bytes > 0 && !is_row_major(tensor)) {
        // An element may be read many times over, by a stride of 0.
        if (bytes.bytes > static_cast<std::int64_t>(file.size()) - copied) {
          throw core::RunError(core::escape_for_terminal(path + ": its tensor " + bytes.name) +
                                   " lies in steps, and rows of it would take more than the file",
                               "write it with torch.save after .contiguous()");
        }
        copied += bytes.bytes;
        std::vector<char>& copy = copies_.emplace_back(static_cast<std::size_t>(bytes.bytes));
        gather(tensor, file.data() + tensor.begin, copy.data());
        bytes.data = copy.data();
      }
      add(std::move(bytes));
    }
  }

  void let_go(const void* data, std::int64_t bytes) const override { file_.let_go(data, bytes); }
  std::optional<FilePlace> place_of(const void* data) const override { return file_.place_of(data); }

 private:
  MappedFile file_;
  std::deque<std::vector<char>> copies_;
};

}  // namespace

core::Result<std::unique_ptr<SafetensorsReader>> open_torch_file(const std::string& path) {
  return attempt([&]() -> std::unique_ptr<SafetensorsReader> { return std::make_unique<Reader>(path); });
}

}  // namespace runner::artifact

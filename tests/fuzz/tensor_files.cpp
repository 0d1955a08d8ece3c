#include "tests/fuzz/tensor_files.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "runner/artifact/foreign/torch_file.h"
#include "runner/artifact/safetensors_header.h"
#include "runner/core/error.h"
#include "runner/gguf/model_config.h"
#include "runner/gguf/names.h"
#include "runner/gguf/reader.h"
#include "runner/gguf/tokenizer_files.h"

namespace tests {
namespace {

using runner::artifact::TorchTensor;

constexpr std::size_t kBytesMax = 1 << 16;
constexpr std::uint64_t kNumbers[] = {0,          1,          2,          8,          255,
                                      256,        0x7FFF,     0xFFFF,     0x7FFFFFFF, 0xFFFFFFFF,
                                      1ULL << 40, 1ULL << 62, ~0ULL >> 1, 1ULL << 63, ~0ULL};
constexpr std::string_view kWords[] = {"(",
                                       ".",
                                       "0",
                                       "1",
                                       "N",
                                       "}",
                                       "]",
                                       ")",
                                       "t",
                                       "a",
                                       "e",
                                       "s",
                                       "u",
                                       "b",
                                       "R",
                                       "Q",
                                       "\x85",
                                       "\x86",
                                       "\x87",
                                       "\x94",
                                       "cos\nsystem\n",
                                       "ctorch\nFloatStorage\n",
                                       "ctorch._utils\n_rebuild_tensor_v2\n",
                                       "\x8a\x08",
                                       "PK\x05\x06",
                                       "PK\x06\x06",
                                       "PK\x06\x07",
                                       "\"dtype\":\"F32\",",
                                       "\"shape\":[",
                                       "[[[[",
                                       "-1",
                                       "9223372036854775807",
                                       "1e9",
                                       "data_offsets",
                                       "GGUF",
                                       "tokenizer.ggml.",
                                       "llama."};

void read_torch(const std::string& file) {
  try {
    const auto bytes = static_cast<std::int64_t>(file.size());
    for (const TorchTensor& tensor : runner::artifact::parse_torch_file(file, "a.pt").tensors) {
      std::int64_t last = 0;
      bool empty = false;
      for (std::size_t axis = 0; axis < tensor.shape.size(); ++axis) {
        empty = empty || tensor.shape[axis] == 0;
        last += (tensor.shape[axis] - 1) * tensor.strides[axis];
      }
      if (empty) continue;
      if (tensor.begin < 0 || last < 0 || tensor.begin > bytes || last >= (bytes - tensor.begin) / tensor.item_bytes) {
        std::abort();
      }
    }
  } catch (const runner::core::RunError&) {
  }
}

void read_safetensors(const std::string& file) {
  try {
    const auto bytes = static_cast<std::int64_t>(file.size());
    const std::int64_t header = runner::artifact::safetensors_header_bytes(file, bytes, "a.safetensors");
    const std::int64_t data = bytes - runner::artifact::kHeaderLengthBytes - header;
    const std::string_view json =
        std::string_view(file).substr(runner::artifact::kHeaderLengthBytes, static_cast<std::size_t>(header));
    for (const auto& entry : runner::artifact::parse_safetensors_header(json, data, "a.safetensors").entries) {
      if (entry.begin < 0 || entry.begin > data || entry.tensor.bytes > data - entry.begin) std::abort();
    }
  } catch (const runner::core::RunError&) {
  }
}

void read_gguf(const std::string& file) {
  const auto read = runner::gguf::parse(file, "a.gguf");
  if (!read) return;
  for (const runner::gguf::Tensor& tensor : read.value()->tensors()) {
    const std::int64_t begin = tensor.data - file.data();
    const std::int64_t bytes = tensor.rows() * runner::gguf::row_bytes(tensor.type, tensor.columns());
    if (begin < 0 || begin > static_cast<std::int64_t>(file.size()) ||
        bytes > static_cast<std::int64_t>(file.size()) - begin) {
      std::abort();
    }
  }
  try {
    if (const auto* architecture = runner::gguf::architecture_called("llama")) {
      runner::gguf::config_of(*read.value(), *architecture, "a.gguf");
    }
    runner::gguf::tokenizer_files(read.value()->values(), "a.gguf");
  } catch (const runner::core::RunError&) {
  }
}

}  // namespace

void TensorFiles::damage(std::string& file) {
  const std::size_t at = below(file.size() + 1);
  const std::size_t length = std::min(1 + below(24), file.size() - at);
  switch (below(9)) {
    case 0:
    case 1:
      if (at < file.size()) file[at] = static_cast<char>(file[at] ^ (1 << below(8)));
      break;
    case 2:
      if (at < file.size()) file[at] = static_cast<char>(random_());
      break;
    case 3: {
      const std::uint64_t number = kNumbers[below(std::size(kNumbers))];
      for (std::size_t i = 0; i < std::size_t{1} << below(4) && at + i < file.size(); ++i) {
        file[at + i] = static_cast<char>(number >> (8 * i));
      }
      break;
    }
    case 4: file.insert(at, kWords[below(std::size(kWords))]); break;
    case 5: {
      // In place: lengths and offsets elsewhere stay true.
      const std::string_view word = kWords[below(std::size(kWords))];
      if (word.size() <= file.size() - at) file.replace(at, word.size(), word);
      break;
    }
    case 6: file.resize(at); break;
    case 7: {
      const std::string& other = corpus_[below(corpus_.size())];
      const std::size_t from = below(other.size());
      file.replace(at, length, other, from, length);
      break;
    }
    default: {
      const std::string part = file.substr(at, length);
      for (std::size_t i = below(300); i > 0; --i) file.insert(at, part);
    }
  }
  if (file.size() > kBytesMax) file.resize(kBytesMax);
}

std::string TensorFiles::next() {
  std::string file = corpus_[below(corpus_.size())];
  for (std::size_t rounds = 1 + below(4); rounds > 0; --rounds) damage(file);
  return file;
}

void TensorFiles::read(const std::string& file) {
  const std::string exact(file);  // without room after it, so that a sanitizer sees what reads too far
  read_torch(exact);
  read_safetensors(exact);
  read_gguf(exact);
}

}  // namespace tests

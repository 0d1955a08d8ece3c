#include "tests/fuzz/tensor_files.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "components/kernels/block_codes.h"
#include "components/quantization/form.h"
#include "runner/artifact/foreign/torch_file.h"
#include "runner/artifact/safetensors_header.h"
#include "runner/artifact/safetensors_layout.h"
#include "runner/core/error.h"
#include "runner/gguf/model_config.h"
#include "runner/gguf/names.h"
#include "runner/gguf/reader.h"
#include "runner/gguf/tokenizer_files.h"
#include "runner/pretrained/packed/pack.h"
#include "runner/pretrained/packed/packed_reader.h"

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
                                       ".quant_state.bitsandbytes__nf4",
                                       ".weight.absmax",
                                       ".SCB",
                                       "\"blocksize\":",
                                       "\"shape\":",
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

/// Of a parsed header and the bytes behind it.
class Parsed final : public runner::artifact::TensorList {
 public:
  Parsed(const runner::artifact::SafetensorsHeader& header, const char* data) {
    for (auto entry : header.entries) {
      entry.tensor.data = data + entry.begin;
      add(std::move(entry.tensor));
    }
  }
};

/// Weights in 4 and 8 bits, each number of which is read.
void read_packed(std::unique_ptr<Parsed> tensors) {
  const runner::pretrained::PackedReader reader(std::move(tensors), "a.safetensors");
  for (const auto& tensor : reader.tensors()) {
    const runner::pretrained::PackedWeight* weight = reader.packed(tensor.name);
    if (weight == nullptr) continue;
    if (weight->out * weight->in > 2 * static_cast<std::int64_t>(kBytesMax)) std::abort();
    std::vector<float> numbers(static_cast<std::size_t>(weight->out * weight->in));
    weight->read_rows(0, weight->out, numbers.data());
  }
}

void read_safetensors(const std::string& file) {
  try {
    const auto bytes = static_cast<std::int64_t>(file.size());
    const std::int64_t header = runner::artifact::safetensors_header_bytes(file, bytes, "a.safetensors");
    const std::int64_t data = bytes - runner::artifact::kHeaderLengthBytes - header;
    const std::string_view json =
        std::string_view(file).substr(runner::artifact::kHeaderLengthBytes, static_cast<std::size_t>(header));
    const auto parsed = runner::artifact::parse_safetensors_header(json, data, "a.safetensors");
    for (const auto& entry : parsed.entries) {
      if (entry.begin < 0 || entry.begin > data || entry.tensor.bytes > data - entry.begin) std::abort();
    }
    read_packed(std::make_unique<Parsed>(parsed, file.data() + (file.size() - static_cast<std::size_t>(data))));
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

std::string packed_file(const std::string& quant_type) {
  using namespace runner;
  constexpr std::int64_t kOut = 2, kIn = 96;
  const pretrained::PackForm form{
      quant_type == "nf4" ? pretrained::PackedWeight::Kind::kNf4 : pretrained::PackedWeight::Kind::kInt8, true};
  std::vector<float> numbers;
  for (std::int64_t i = 0; i < kOut * kIn; ++i) numbers.push_back(static_cast<float>(i % 7) - 3.0F);
  const pretrained::Packed packed = pretrained::pack(numbers, kIn, form);
  const std::string state = R"({"quant_type":"nf4","blocksize":64,"dtype":"float32","shape":[2,96],)"
                            R"("nested_blocksize":256,"nested_dtype":"float32","nested_offset":1.5})";
  const char format = 0;
  std::vector<artifact::TensorBytes> tensors;
  const auto add = [&tensors](const char* name, const char* dtype, std::vector<std::int64_t> shape, const void* data,
                              std::size_t bytes) {
    tensors.push_back({name, dtype, std::move(shape), data, static_cast<std::int64_t>(bytes), {}});
  };
  if (quant_type == "nf4") {
    const auto& map = components::quantization::table_of(form.kind).values;
    const auto& nested_map = components::kernels::kSignedCodes.values;
    add("a.weight", "U8", {kOut * kIn / 2, 1}, packed.codes.data(), packed.codes.size());
    add("a.weight.absmax", "U8", {3}, packed.nested_codes.data(), packed.nested_codes.size());
    add("a.weight.nested_absmax", "F32", {1}, packed.scales.data(), sizeof(float));
    add("a.weight.quant_map", "F32", {16}, map.data(), sizeof(map));
    add("a.weight.nested_quant_map", "F32", {256}, nested_map.data(), sizeof(nested_map));
    add("a.weight.quant_state.bitsandbytes__nf4", "U8", {static_cast<std::int64_t>(state.size())}, state.data(),
        state.size());
  } else {
    add("a.weight", "I8", {kOut, kIn}, packed.codes.data(), packed.codes.size());
    add("a.SCB", "F32", {kOut}, packed.scales.data(), kOut * sizeof(float));
    add("a.weight_format", "U8", {}, &format, 1);
  }
  artifact::sort_for_safetensors(tensors);
  std::string file = artifact::safetensors_head(tensors, {});
  for (const artifact::TensorBytes& tensor : tensors) {
    file.append(static_cast<const char*>(tensor.data), static_cast<std::size_t>(tensor.bytes));
  }
  return file;
}

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

#include "runner/artifact/safetensors_layout.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "runner/core/text/utf8.h"

namespace runner::artifact {
namespace {

struct Dtype {
  std::string_view word;
  std::int64_t item_bytes;
};

// The library's own order (safetensors/src/tensor.rs, `enum Dtype`), from the last to the first. Files sorted any other
// way are still valid; the order makes ours equal to what it writes.
constexpr std::array kDtypes = {
    Dtype{"U64", 8},     Dtype{"I64", 8},     Dtype{"F64", 8}, Dtype{"F32", 4}, Dtype{"U32", 4},
    Dtype{"I32", 4},     Dtype{"BF16", 2},    Dtype{"F16", 2}, Dtype{"U16", 2}, Dtype{"I16", 2},
    Dtype{"F8_E4M3", 1}, Dtype{"F8_E5M2", 1}, Dtype{"I8", 1},  Dtype{"U8", 1},  Dtype{"BOOL", 1},
};

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kLengthBytes = 8;

std::size_t rank_of(std::string_view dtype) {
  const auto* found = std::find_if(kDtypes.begin(), kDtypes.end(), [&](const Dtype& d) { return d.word == dtype; });
  return static_cast<std::size_t>(found - kDtypes.begin());
}

}  // namespace

std::int64_t safetensors_item_bytes(std::string_view dtype) {
  const std::size_t rank = rank_of(dtype);
  return rank < kDtypes.size() ? kDtypes[rank].item_bytes : 0;
}

void sort_for_safetensors(std::vector<TensorBytes>& tensors) {
  std::sort(tensors.begin(), tensors.end(), [](const TensorBytes& a, const TensorBytes& b) {
    const std::size_t rank_a = rank_of(a.dtype);
    const std::size_t rank_b = rank_of(b.dtype);
    return rank_a != rank_b ? rank_a < rank_b : a.name < b.name;
  });
}

std::string safetensors_head(const std::vector<TensorBytes>& sorted,
                             const std::vector<std::pair<std::string, std::string>>& metadata) {
  std::string json = "{\"__metadata__\":{";
  for (std::size_t i = 0; i < metadata.size(); ++i) {
    if (i > 0) json += ',';
    json += core::json_quote(metadata[i].first) + ':' + core::json_quote(metadata[i].second);
  }
  json += '}';
  std::int64_t offset = 0;
  for (const TensorBytes& tensor : sorted) {
    json += ',' + core::json_quote(tensor.name) + ":{\"dtype\":\"" + tensor.dtype + "\",\"shape\":[";
    for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
      if (i > 0) json += ',';
      json += std::to_string(tensor.shape[i]);
    }
    json += "],\"data_offsets\":[" + std::to_string(offset) + ',' + std::to_string(offset + tensor.bytes) + "]}";
    offset += tensor.bytes;
  }
  json += '}';
  json.resize((kLengthBytes + json.size() + kAlignment - 1) / kAlignment * kAlignment - kLengthBytes, ' ');

  std::string head(kLengthBytes, '\0');
  const std::uint64_t length = json.size();
  for (std::size_t i = 0; i < kLengthBytes; ++i) head[i] = static_cast<char>(length >> (8 * i));
  return head + json;
}

}  // namespace runner::artifact

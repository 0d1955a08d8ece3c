#include "runner/checkpoint/tensor_file.h"

#include <ATen/Functions.h>
#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>

#include <array>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include "components/tensors.h"
#include "runner/core/error.h"

namespace runner::checkpoint {
namespace {

struct Dtype {
  std::string_view word;
  at::ScalarType type;
};

constexpr std::array kDtypes = {
    Dtype{"F64", at::kDouble},
    Dtype{"F32", at::kFloat},
    Dtype{"BF16", at::kBFloat16},
    Dtype{"F16", at::kHalf},
    Dtype{"I64", at::kLong},
    Dtype{"I32", at::kInt},
    Dtype{"I16", at::kShort},
    Dtype{"I8", at::kChar},
    Dtype{"U8", at::kByte},
    Dtype{"BOOL", at::kBool},
    Dtype{"U16", at::kUInt16},
    Dtype{"U32", at::kUInt32},
    Dtype{"U64", at::kUInt64},
    Dtype{"F8_E4M3", at::kFloat8_e4m3fn},
    Dtype{"F8_E5M2", at::kFloat8_e5m2},
};

constexpr std::string_view kStridesKey = "strides.";

std::string joined(at::IntArrayRef sizes) {
  std::string text;
  for (const std::int64_t size : sizes) text += (text.empty() ? "" : ",") + std::to_string(size);
  return text;
}

std::vector<std::int64_t> parse_sizes(std::string_view text) {
  std::vector<std::int64_t> sizes;
  while (!text.empty()) {
    std::int64_t size = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
    if (error != std::errc() || size < 0) return {};
    sizes.push_back(size);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (!text.empty()) text.remove_prefix(1);
  }
  return sizes;
}

at::ScalarType type_of(const artifact::TensorBytes& bytes, const std::string& path) {
  for (const Dtype& dtype : kDtypes) {
    if (dtype.word == bytes.dtype) return dtype.type;
  }
  throw core::RunError(path + ": tensor " + bytes.name + " has the type " + bytes.dtype + ", which LibTorch has not");
}

/// Row-major copy; by memcpy, because a file of another program may have its data anywhere.
at::Tensor row_major(const artifact::TensorBytes& bytes, const std::string& path) {
  at::Tensor tensor = at::empty(bytes.shape, at::TensorOptions().dtype(type_of(bytes, path)));
  if (bytes.bytes > 0) std::memcpy(tensor.data_ptr(), bytes.data, static_cast<std::size_t>(bytes.bytes));
  return tensor;
}

}  // namespace

std::string dtype_word(const at::Tensor& tensor) {
  for (const Dtype& dtype : kDtypes) {
    if (dtype.type == tensor.scalar_type()) return std::string(dtype.word);
  }
  return "";
}

struct TensorFile::Contents {
  components::NamedTensors tensors;  // on the CPU, row-major
  std::vector<std::pair<std::string, std::string>> metadata = {{"format", "pt"}};
};

TensorFile::TensorFile(std::string file_name)
    : file_name_(std::move(file_name)), contents_(std::make_unique<Contents>()) {}
TensorFile::~TensorFile() = default;
TensorFile::TensorFile(TensorFile&&) noexcept = default;

void TensorFile::add(const std::string& name, const at::Tensor& tensor) {
  if (dtype_word(tensor).empty()) {
    throw core::RunError("tensor " + name + " has the type " + c10::toString(tensor.scalar_type()) +
                         ", which safetensors has no word for");
  }
  const c10::NoGradGuard no_grad;
  if (!tensor.is_contiguous() && tensor.is_non_overlapping_and_dense()) {
    contents_->metadata.emplace_back(std::string(kStridesKey) + name, joined(tensor.strides()));
  }
  contents_->tensors.push_back({name, tensor.detach().cpu().contiguous()});
}

bool TensorFile::empty() const { return contents_->tensors.empty(); }

std::int64_t TensorFile::bytes() const {
  std::int64_t bytes = 0;
  for (const components::NamedTensor& named : contents_->tensors)
    bytes += static_cast<std::int64_t>(named.tensor.nbytes());
  return bytes;
}

core::Result<void> TensorFile::write(artifact::CheckpointDraft& draft) const {
  std::vector<artifact::TensorBytes> tensors;
  tensors.reserve(contents_->tensors.size());
  for (const components::NamedTensor& named : contents_->tensors) {
    tensors.push_back({named.name, dtype_word(named.tensor), named.tensor.sizes().vec(), named.tensor.const_data_ptr(),
                       static_cast<std::int64_t>(named.tensor.nbytes())});
  }
  return draft.add_safetensors(file_name_, std::move(tensors), contents_->metadata);
}

TensorSource::TensorSource(std::string path)
    : path_(std::move(path)), reader_(artifact::SafetensorsReader::open(path_).value()) {}
TensorSource::~TensorSource() = default;

const std::vector<artifact::TensorBytes>& TensorSource::tensors() const { return reader_->tensors(); }
const artifact::TensorBytes* TensorSource::find(const std::string& name) const { return reader_->find(name); }

at::Tensor TensorSource::tensor(const std::string& name) const {
  const artifact::TensorBytes* bytes = find(name);
  if (bytes == nullptr) throw core::RunError(path_ + " has no tensor " + name);
  at::Tensor tensor = row_major(*bytes, path_);
  for (const auto& [key, value] : reader_->metadata()) {
    if (key != std::string(kStridesKey) + name) continue;
    const std::vector<std::int64_t> strides = parse_sizes(value);
    if (strides.size() != bytes->shape.size()) break;
    at::Tensor strided = at::empty_strided(bytes->shape, strides, tensor.options());
    if (!strided.is_non_overlapping_and_dense()) break;  // nothing that add() writes
    return strided.copy_(tensor);
  }
  return tensor;
}

void TensorSource::copy_to(const artifact::TensorBytes& bytes, const at::Tensor& target) const {
  const c10::NoGradGuard no_grad;
  if (target.is_cpu() && target.is_contiguous() && dtype_word(target) == bytes.dtype) {
    if (bytes.bytes > 0) std::memcpy(target.data_ptr(), bytes.data, static_cast<std::size_t>(bytes.bytes));
  } else {
    target.copy_(row_major(bytes, path_));
  }
}

}  // namespace runner::checkpoint

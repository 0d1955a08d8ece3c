#include "runner/checkpoint/tensor_file.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "components/tensor/tensors.h"
#include "runner/artifact/safetensors_layout.h"
#include "runner/artifact/tensor_bytes.h"
#include "runner/artifact/tensor_set.h"
#include "runner/checkpoint/checkpoint_prefetch.h"
#include "runner/core/error.h"
#include "runner/core/text/text.h"
#include "runner/pretrained/packed/packed_reader.h"

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

constexpr std::int64_t kCopyBytes = 4 << 20;      // one thread's piece of a copy
constexpr std::int64_t kHeldBytes = 32 << 20;     // of a file's tensor, at a time, while it is copied to a model's
constexpr std::int64_t kStreamedBytesMin = 4096;  // a smaller copy stays in the caches anyway
constexpr std::string_view kStridesKey = "strides.";

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
  throw core::RunError(path + ": tensor " + bytes.name + " has the type " + bytes.dtype +
                       ", which LibTorch does not support");
}

/// Of a whole tensor.
std::vector<CopyPiece> copies_of(const artifact::TensorBytes& bytes, char* to) {
  std::vector<CopyPiece> copies;
  for (const artifact::BytesPiece& piece : artifact::pieces_of(bytes)) {
    copies.push_back({to, piece.data, piece.bytes});
    to += piece.bytes;
  }
  return copies;
}

/// A copy that is not read soon: non-temporal stores avoid reading memory before it is overwritten and leave the caches
/// to the steps. A third faster than memcpy.
void copy_past_caches(char* to, const char* from, std::int64_t bytes) {
#if defined(__SSE2__)
  constexpr std::int64_t kLine = 64;
  if (bytes >= kStreamedBytesMin) {
    const auto head = static_cast<std::int64_t>(-reinterpret_cast<std::uintptr_t>(to) % kLine);
    std::memcpy(to, from, static_cast<std::size_t>(head));
    to += head, from += head, bytes -= head;
    for (; bytes >= kLine; to += kLine, from += kLine, bytes -= kLine) {
      for (std::int64_t i = 0; i < kLine; i += 16) {
        _mm_stream_si128(reinterpret_cast<__m128i*>(to + i),
                         _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
      }
    }
    _mm_sfence();
  }
#endif
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

}  // namespace

void copy_all(const std::vector<CopyPiece>& pieces) {
  std::vector<CopyPiece> cut;
  for (CopyPiece piece : pieces) {
    while (piece.bytes > 0) {
      const std::int64_t bytes = std::min(piece.bytes, kCopyBytes);
      cut.push_back({piece.to, piece.from, bytes});
      piece = {piece.to + bytes, piece.from + bytes, piece.bytes - bytes};
    }
  }
  if (cut.size() == 1) {  // not worth waking threads
    std::memcpy(cut[0].to, cut[0].from, static_cast<std::size_t>(cut[0].bytes));
    return;
  }
  // Distributed one by one: tensors differ in size, and a core may be busy with other work.
  std::atomic<std::size_t> next{0};
  at::parallel_for(0, at::get_num_threads(), 1, [&](std::int64_t, std::int64_t) {
    for (std::size_t i = next++; i < cut.size(); i = next++) {
      copy_past_caches(cut[i].to, cut[i].from, cut[i].bytes);
    }
  });
}

std::string dtype_word(const at::Tensor& tensor) {
  for (const Dtype& dtype : kDtypes) {
    if (dtype.type == tensor.scalar_type()) return std::string(dtype.word);
  }
  return "";
}

struct TensorFile::Contents {
  components::NamedTensors tensors;  // on the CPU, row-major
  std::vector<std::pair<std::string, std::string>> metadata = {{"format", "pt"}};
  // Layout of the file, once all tensors were added.
  std::vector<artifact::TensorBytes> sorted;
  std::string head;
  std::int64_t bytes = 0;
  const char* image = nullptr;  // copy of the whole file; the tensors are released then
};

TensorFile::TensorFile(std::string file_name, components::Download* download)
    : file_name_(std::move(file_name)), download_(download), contents_(std::make_unique<Contents>()) {}
TensorFile::~TensorFile() = default;
TensorFile::TensorFile(TensorFile&&) noexcept = default;

void TensorFile::add(const std::string& name, const at::Tensor& tensor) {
  if (dtype_word(tensor).empty()) {
    throw core::RunError("tensor " + name + " has the type " + c10::toString(tensor.scalar_type()) +
                         ", which safetensors does not support");
  }
  RUNNER_ASSERT(contents_->head.empty(), "a file is complete before its size is asked for");
  const c10::NoGradGuard no_grad;
  if (!tensor.is_contiguous() && tensor.is_non_overlapping_and_dense()) {
    contents_->metadata.emplace_back(std::string(kStridesKey) + name, core::joined(tensor.strides(), ","));
  }
  contents_->tensors.push_back(
      {name, download_ != nullptr ? (*download_)(tensor) : tensor.detach().cpu().contiguous()});
}

bool TensorFile::empty() const { return contents_->tensors.empty() && contents_->image == nullptr; }

void TensorFile::lay_out() const {
  Contents& contents = *contents_;
  if (!contents.head.empty()) return;
  for (const components::NamedTensor& named : contents.tensors) {
    contents.sorted.push_back({named.name, dtype_word(named.tensor), named.tensor.sizes().vec(),
                               named.tensor.const_data_ptr(), static_cast<std::int64_t>(named.tensor.nbytes())});
  }
  artifact::sort_for_safetensors(contents.sorted);
  contents.head = artifact::safetensors_head(contents.sorted, contents.metadata);
  contents.bytes = static_cast<std::int64_t>(contents.head.size());
  for (const artifact::TensorBytes& tensor : contents.sorted) contents.bytes += tensor.bytes;
}

std::int64_t TensorFile::bytes() const {
  lay_out();
  return contents_->bytes;
}

void TensorFile::move_to(char* memory, std::vector<CopyPiece>& pieces) {
  lay_out();
  Contents& contents = *contents_;
  std::copy(contents.head.begin(), contents.head.end(), memory);
  char* next = memory + contents.head.size();
  for (const artifact::TensorBytes& tensor : contents.sorted) {
    if (tensor.bytes > 0) pieces.push_back({next, static_cast<const char*>(tensor.data), tensor.bytes});
    next += tensor.bytes;
  }
  contents.image = memory;
}

void TensorFile::release() {
  contents_->sorted.clear();
  contents_->tensors.clear();
}

core::Result<void> TensorFile::write(artifact::CheckpointWriter& draft) const {
  lay_out();
  if (contents_->image != nullptr) return draft.add_bytes(file_name_, contents_->image, contents_->bytes);
  return draft.add_safetensors(file_name_, contents_->sorted, contents_->metadata);
}

at::Tensor new_tensor(const artifact::TensorBytes& bytes, const std::string& path) {
  return at::empty(bytes.shape, at::TensorOptions().dtype(type_of(bytes, path)));
}

TensorSource::TensorSource(std::string path, CheckpointPrefetch* prefetched)
    : path_(std::move(path)), prefetched_(prefetched) {
  const auto open = [prefetched](const std::string& file) {
    return prefetched != nullptr ? prefetched->open(file) : artifact::open_tensor_file(file);
  };
  reader_ = pretrained::PackedReader::open(path_, open).value();
}
TensorSource::~TensorSource() = default;

const std::vector<artifact::TensorBytes>& TensorSource::tensors() const { return reader_->tensors(); }
const artifact::TensorBytes* TensorSource::find(const std::string& name) const { return reader_->find(name); }
const pretrained::PackedWeight* TensorSource::packed(const std::string& name) const { return reader_->packed(name); }

at::Tensor TensorSource::tensor(const std::string& name) const {
  const artifact::TensorBytes* bytes = find(name);
  if (bytes == nullptr) throw core::RunError(path_ + " has no tensor " + name);
  at::Tensor tensor = prefetched_ != nullptr ? prefetched_->take(*bytes) : at::Tensor();
  if (!tensor.defined()) {
    tensor = row_major(*bytes);
    let_go(*bytes);
  }
  for (const auto& [key, value] : reader_->metadata()) {
    if (key != std::string(kStridesKey) + name) continue;
    const std::vector<std::int64_t> strides = parse_sizes(value);
    if (strides.size() != bytes->shape.size()) break;
    at::Tensor strided = at::empty_strided(bytes->shape, strides, tensor.options());
    if (!strided.is_non_overlapping_and_dense()) break;  // not written by add()
    return strided.copy_(tensor);
  }
  return tensor;
}

void TensorSource::copy_to(const artifact::TensorBytes& bytes, const at::Tensor& target) const {
  const c10::NoGradGuard no_grad;
  if (const pretrained::PackedWeight* weight = packed(bytes.name)) {
    copy_packed(*weight, target);
    return let_go(bytes);
  }
  const std::int64_t rows = bytes.shape.empty() ? 1 : bytes.shape.front();
  if (rows <= 1 || bytes.bytes <= kHeldBytes) return copy_piece(bytes, target);
  const std::int64_t of_row = bytes.bytes / rows, most = std::max<std::int64_t>(1, kHeldBytes / of_row);
  for (std::int64_t first = 0; first < rows; first += most) {
    const std::int64_t size = std::min(most, rows - first);
    copy_piece(artifact::rows_of(bytes, first, size), target.narrow(0, first, size));
  }
}

void TensorSource::let_go(const artifact::TensorBytes& bytes) const {
  for (const artifact::BytesPiece& piece : artifact::pieces_of(bytes)) reader_->let_go(piece.data, piece.bytes);
}

std::vector<FilePart> TensorSource::parts_of(const artifact::TensorBytes& bytes, std::int64_t first_row,
                                             bool transposed) const {
  const auto refuse = [&](const std::string& why) {
    throw core::RunError("placement: " + path_ + ": " + bytes.name + " " + why + ", and cannot stay on the disk",
                         "give the memory more room in placement.max_memory", core::kExitUsage);
  };
  if (packed(bytes.name) != nullptr) refuse("is kept in fewer bits");
  const std::int64_t rows = bytes.shape.empty() ? 1 : bytes.shape.front();
  std::vector<FilePart> parts;
  if (bytes.bytes == 0) return parts;
  const std::int64_t of_row = bytes.bytes / rows;
  const std::int64_t of = of_row / static_cast<std::int64_t>(artifact::safetensors_item_bytes(bytes.dtype));
  for (const artifact::BytesPiece& piece : artifact::pieces_of(bytes)) {
    const auto place = reader_->place_of(piece.data);
    if (!place) refuse("lies in no file as it is used");
    if (piece.bytes % of_row != 0 || (transposed && piece.bytes != bytes.bytes)) refuse("lies in pieces");
    parts.push_back(
        {place->path, place->offset, piece.bytes, bytes.dtype, first_row, piece.bytes / of_row, of, transposed});
    first_row += piece.bytes / of_row;
  }
  return parts;
}

void TensorSource::copy_packed(const pretrained::PackedWeight& weight, const at::Tensor& target) const {
  const std::int64_t of_row = weight.in * static_cast<std::int64_t>(sizeof(float));
  const std::int64_t most = std::clamp<std::int64_t>(kHeldBytes / of_row, 1, weight.out);
  const at::Tensor held = at::empty({most, weight.in}, at::TensorOptions().dtype(at::kFloat));
  for (std::int64_t first = 0; first < weight.out; first += most) {
    const at::Tensor piece = held.narrow(0, 0, std::min(most, weight.out - first));
    weight.read_rows(first, piece.size(0), piece.mutable_data_ptr<float>());
    target.narrow(0, first, piece.size(0)).copy_(piece);
  }
}

void TensorSource::copy_piece(const artifact::TensorBytes& bytes, const at::Tensor& target) const {
  if (target.is_cpu() && target.is_contiguous() && dtype_word(target) == bytes.dtype) {
    copy_all(copies_of(bytes, static_cast<char*>(target.data_ptr())));
  } else {
    target.copy_(row_major(bytes));
  }
  let_go(bytes);
}

/// Byte by byte, because a file of another program may have its data anywhere.
at::Tensor TensorSource::row_major(const artifact::TensorBytes& bytes) const {
  at::Tensor tensor = new_tensor(bytes, path_);
  copy_all(copies_of(bytes, static_cast<char*>(tensor.data_ptr())));
  return tensor;
}

}  // namespace runner::checkpoint

#include "components/part/weight.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/DeviceType.h>
#include <sys/mman.h>

#include <cmath>
#include <utility>

#include "components/kernels/transformer.h"
#include "components/ops/bf16_weight_cache.h"
#include "components/ops/torch_bridge.h"
#include "components/part/quantized_product.h"
#include "components/tensor/tensors.h"
#include "runner/core/error.h"

namespace components::part {
namespace {

constexpr std::size_t kMappedBytesMin = 1 << 20;
constexpr std::int64_t kPiece = 1 << 20;  ///< elements; a multiple of 16, see draw_in_pieces()

at::Tensor uninitialised(std::span<const std::int64_t> shape, at::ScalarType type, c10::DeviceType device) {
  return at::empty(at::IntArrayRef(shape.data(), shape.size()), at::TensorOptions().dtype(type).device(device));
}

at::Tensor on_cpu(const std::string& name, std::span<const std::int64_t> shape, const std::set<std::string>& in_bf16) {
  return uninitialised(shape, in_bf16.contains(name) ? at::kBFloat16 : at::kFloat, at::kCPU);
}

/// As large as it says: an allocator's next size is up to a fifth larger, and huge pages fill what is left over with
/// memory. Undefined where that makes no difference, or there is none.
at::Tensor mapped(std::span<const std::int64_t> shape, at::ScalarType type) {
  std::size_t bytes = c10::elementSize(type);
  for (const std::int64_t size : shape) bytes *= static_cast<std::size_t>(size);
  if (bytes < kMappedBytesMin) return {};
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return {};
  ::madvise(memory, bytes, MADV_HUGEPAGE);
  return at::from_blob(
      memory, at::IntArrayRef(shape.data(), shape.size()), [bytes](void* whole) { ::munmap(whole, bytes); },
      at::TensorOptions().dtype(type));
}

void draw(const at::Tensor& float32, const Init& init) {
  if (init.kind == Init::Kind::kUniform) {
    float32.uniform_(-init.value, init.value);
  } else {
    float32.normal_(0.0, init.value);
  }
}

/// Rounded from the numbers that draw() gives a float32 tensor of that size, without having all of those at once.
/// LibTorch makes normal ones in groups of 16 and draws the last group again where one would be incomplete: pieces are
/// whole groups, and what remains is never a piece by itself.
void draw_in_pieces(const at::Tensor& tensor, const Init& init) {
  const at::Tensor flat = tensor.view(-1);
  at::Tensor drawn;
  for (std::int64_t first = 0, left = flat.numel(); left > 0;) {
    const std::int64_t size = left < 2 * kPiece ? left : kPiece;
    if (!drawn.defined() || drawn.numel() != size) {
      drawn.reset();  // before the next one is there
      drawn = at::empty(size, at::TensorOptions().dtype(at::kFloat));
    }
    draw(drawn, init);
    flat.narrow(0, first, size).copy_(drawn);
    first += size;
    left -= size;
  }
}

}  // namespace

Init kaiming_uniform(std::int64_t fan_in) {
  // kaiming_uniform_(a=sqrt(5)), step by step as torch.nn.init does it: the last bit of the bound matters.
  const double slope = std::sqrt(5.0);
  const double gain = std::sqrt(2.0 / (1.0 + slope * slope));
  const double deviation = gain / std::sqrt(static_cast<double>(fan_in));
  return uniform(std::sqrt(3.0) * deviation);
}

Init bias_uniform(std::int64_t fan_in) { return uniform(1.0 / std::sqrt(static_cast<double>(fan_in))); }

at::Tensor WeightMaker::make_buffer(const std::string& name, std::span<const std::int64_t> shape, const Init& init) {
  return make(name, shape, init);
}

DrawnWeights::DrawnWeights(std::set<std::string> in_bf16) : in_bf16_(std::move(in_bf16)) {}

at::Tensor DrawnWeights::make(const std::string& name, std::span<const std::int64_t> shape, const Init& init) {
  at::Tensor tensor = on_cpu(name, shape, in_bf16_);
  if (init.kind == Init::Kind::kConstant) {
    tensor.fill_(init.value);
  } else if (tensor.scalar_type() == at::kFloat) {
    draw(tensor, init);
  } else {
    draw_in_pieces(tensor, init);
  }
  if (init.zero_row >= 0) tensor.select(0, init.zero_row).zero_();
  if (init.first_rows > 0) tensor.narrow(0, 0, init.first_rows).mul_(init.first_factor);
  return tensor;
}

UnfilledWeights::UnfilledWeights(std::set<std::string> in_bf16) : in_bf16_(std::move(in_bf16)) {}

at::Tensor UnfilledWeights::make(const std::string& name, std::span<const std::int64_t> shape, const Init& init) {
  at::Tensor tensor = mapped(shape, in_bf16_.contains(name) ? at::kBFloat16 : at::kFloat);
  if (!tensor.defined()) tensor = on_cpu(name, shape, in_bf16_);
  // Buffers are constants, and a file may lack them.
  return init.kind == Init::Kind::kConstant ? tensor.fill_(init.value) : tensor;
}

WeightRows::WeightRows(WeightMaker& whole, const Rows& rows) : whole_(whole), rows_(rows) {}
WeightRows::~WeightRows() = default;
std::vector<NamedTensor> WeightRows::take() { return std::move(kept_); }

at::Tensor WeightRows::make(const std::string& name, std::span<const std::int64_t> shape, const Init& init) {
  const at::Tensor whole = whole_.make(name, shape, init), rows = rows_(name, whole);
  if (!rows.defined()) return whole;
  kept_.push_back({name, rows.clone()});
  const c10::Storage& storage = whole.storage();
  storage.set_data_ptr_noswap(c10::DataPtr(nullptr, whole.device()));
  storage.set_nbytes(0);
  return whole;
}

at::Tensor WeightRows::make_buffer(const std::string& name, std::span<const std::int64_t> shape, const Init& init) {
  return whole_.make_buffer(name, shape, init);
}

at::Tensor MetaWeights::make(const std::string&, std::span<const std::int64_t> shape, const Init&) {
  return uninitialised(shape, at::kFloat, at::kMeta);
}

at::Tensor QuantizedWeights::make(const std::string& name, std::span<const std::int64_t> shape, const Init& init) {
  return others_.make(name, shape, init);
}

at::Tensor QuantizedWeights::make_buffer(const std::string& name, std::span<const std::int64_t> shape,
                                         const Init& init) {
  return others_.make_buffer(name, shape, init);
}

const QuantizedForm* QuantizedWeights::form_of(const std::string& name) const {
  const auto at = forms_.find(name);
  return at != forms_.end() ? &at->second : nullptr;
}

Weight::Weight() : tensor_(std::make_unique<at::Tensor>()) {}
Weight::Weight(const at::Tensor& tensor)
    : tensor_(std::make_unique<at::Tensor>(tensor)), low_(std::make_unique<Bf16WeightCache>()) {}
Weight::~Weight() = default;
Weight::Weight(Weight&& other) noexcept = default;
Weight& Weight::operator=(Weight&& other) noexcept = default;

bool Weight::defined() const { return tensor_->defined(); }

at::Tensor Weight::for_products(bool bf16, bool keeps) const {
  const bool is_kept = keeps && bf16 && tensor_->scalar_type() == at::kFloat;
  return is_kept ? low_->in_bf16(*tensor_) : part::for_products(*tensor_, bf16);
}

at::Tensor for_products(const at::Tensor& tensor, bool bf16) {
  if (!bf16) return tensor.to(at::kFloat);
  return tensor.scalar_type() == at::kBFloat16 ? tensor : kernels::lowered<kernels::Bf16>(tensor);
}

Declared::Declared() = default;
Declared::Declared(WeightMaker& maker) : maker_(&maker) {}
Declared::~Declared() = default;

at::Tensor Declared::parameter(std::string full_name, std::span<const std::int64_t> shape, const Init& init) {
  RUNNER_ASSERT(maker_ != nullptr, "a block that declares parameters is given who makes them");
  at::Tensor tensor = maker_->make(full_name, shape, init).set_requires_grad(true);
  parameters_.push_back({std::move(full_name), std::move(tensor)});
  return parameters_.back().tensor;
}

const QuantizedForm* Declared::form_of(const std::string& full_name) const {
  return maker_ != nullptr ? maker_->form_of(full_name) : nullptr;
}

bool Declared::on_meta() const { return maker_ != nullptr && maker_->meta(); }

at::Tensor Declared::buffer(std::string full_name, std::span<const std::int64_t> shape, double value) {
  RUNNER_ASSERT(maker_ != nullptr, "a block that declares buffers is given who makes them");
  at::Tensor tensor = maker_->make_buffer(full_name, shape, constant(value));
  buffers_.push_back({std::move(full_name), std::move(tensor)});
  return buffers_.back().tensor;
}

}  // namespace components::part

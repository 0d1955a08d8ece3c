#include "tests/support/torch/pretended_accelerator.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/Functions.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/jit_type.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/accumulate.h>
#include <sys/mman.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>
#include <vector>

namespace tests::accelerator {
namespace {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

constexpr auto kKind = c10::DeviceType::PrivateUse1;
constexpr const char* kName = "pretend";
constexpr int kDevices = 2;
constexpr std::size_t kPage = 4096, kArenaBytes = std::size_t{4} << 30;
constexpr std::int64_t kNoLimit = std::int64_t{1} << 31;

thread_local c10::DeviceIndex current = 0;

/// The memory of one device: address space of its own, handed out by the page.
class Arena {
 public:
  Arena() : begin_(static_cast<char*>(mmap(nullptr, kArenaBytes, PROT_NONE, kFlags, -1, 0))) {
    TORCH_CHECK(begin_ != MAP_FAILED, "no address space for a pretended device");
  }

  /// Null when nothing is left.
  char* take(std::size_t bytes) {
    std::size_t place = 0;
    for (const auto& [offset, size] : used_) {
      if (offset - place >= bytes) break;
      place = offset + size;
    }
    if (place + bytes > kArenaBytes) return nullptr;
    used_[place] = bytes;
    top_ = std::max(top_, place + bytes);
    return begin_ + place;
  }
  std::size_t give_back(const char* block) {
    const auto found = used_.find(static_cast<std::size_t>(block - begin_));
    const std::size_t bytes = found->second;
    used_.erase(found);
    return bytes;
  }
  bool holds(const void* block) const { return block >= begin_ && block < begin_ + kArenaBytes; }
  void protect(int how) const {
    if (top_ > 0) mprotect(begin_, top_, how);
  }

 private:
  static constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  char* begin_;
  std::map<std::size_t, std::size_t> used_;  // offset and size
  std::size_t top_ = 0;                      // no byte from here on was ever used
};

struct Memory {
  std::mutex mutex;
  std::array<Arena, kDevices> arenas;
  std::array<std::int64_t, kDevices> held = {};
  std::int64_t peak = 0, limit = kNoLimit;
  int open = 0;

  void protect(int how) const {
    for (const Arena& arena : arenas) arena.protect(how);
  }
};

Memory& memory() {
  static auto* const memory = new Memory;  // tensors outlive what is static
  return *memory;
}

/// While one lives, this is a kernel of the backend: device memory can be read.
class Open {
 public:
  Open() {
    const std::lock_guard<std::mutex> lock(memory().mutex);
    if (memory().open++ == 0) memory().protect(PROT_READ | PROT_WRITE);
  }
  ~Open() {
    const std::lock_guard<std::mutex> lock(memory().mutex);
    if (--memory().open == 0) memory().protect(PROT_NONE);
  }
  Open(const Open&) = delete;
  Open& operator=(const Open&) = delete;
};

void release(void* block) {
  if (block == nullptr) return;
  const std::lock_guard<std::mutex> lock(memory().mutex);
  for (std::size_t device = 0; device < kDevices; ++device) {
    Arena& arena = memory().arenas[device];
    if (arena.holds(block))
      memory().held[device] -= static_cast<std::int64_t>(arena.give_back(static_cast<char*>(block)));
  }
}

class Allocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    const c10::Device device(kKind, current);
    if (bytes == 0) return {nullptr, nullptr, &release, device};
    const std::size_t pages = (bytes + kPage - 1) / kPage * kPage;
    char* const block = take(pages, static_cast<std::size_t>(current));
    const Open open;
    std::memset(block, 0xFF, pages);  // what is read before it is written becomes NaN
    return {block, block, &release, device};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    const Open open;
    std::memcpy(to, from, bytes);
  }
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override {}
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex) override { return {}; }
  void resetAccumulatedStats(c10::DeviceIndex) override {}
  void resetPeakStats(c10::DeviceIndex) override {}

 private:
  static char* take(std::size_t bytes, std::size_t device) {
    Memory& m = memory();
    const std::lock_guard<std::mutex> lock(m.mutex);
    const std::int64_t held = m.held[device] + static_cast<std::int64_t>(bytes);
    char* const block = held <= m.limit ? m.arenas[device].take(bytes) : nullptr;
    TORCH_CHECK_WITH(OutOfMemoryError, block != nullptr, kName, " out of memory. Tried to allocate ", bytes,
                     " bytes beside ", m.held[device], "; the limit is ", m.limit);
    if (m.open > 0) mprotect(block, bytes, PROT_READ | PROT_WRITE);  // beyond what was opened
    m.held[device] = held;
    m.peak = std::max(m.peak, held);
    return block;
  }
};

Allocator& allocator() {
  static auto* const allocator = new Allocator;
  return *allocator;
}

class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return kKind; }
  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device before = getDevice();
    setDevice(device);
    return before;
  }
  c10::Device getDevice() const override { return {kKind, current}; }
  void setDevice(c10::Device device) const override {
    TORCH_CHECK(device.index() < kDevices, "there is no ", device);
    uncheckedSetDevice(device);
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.index() >= 0) current = device.index();
  }
  c10::Stream getStream(c10::Device device) const override { return c10::Stream(c10::Stream::DEFAULT, device); }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    return c10::Stream(c10::Stream::DEFAULT, stream.device());
  }
  c10::DeviceIndex deviceCount() const noexcept override { return kDevices; }
};

/// A generator of the CPU under the name of a device; the same seed gives other numbers than on the CPU.
class Generator final : public c10::GeneratorImpl {
 public:
  explicit Generator(c10::DeviceIndex device)
      : GeneratorImpl(c10::Device(kKind, device), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
        inner_(at::detail::createCPUGenerator()) {}

  const at::Generator& inner() const { return inner_; }
  void set_current_seed(std::uint64_t seed) override {
    seed_ = seed;
    inner_.set_current_seed(seed * 0x9E37'79B9'7F4A'7C15ULL + 1);
  }
  std::uint64_t current_seed() const override { return seed_; }
  std::uint64_t seed() override {
    set_current_seed(inner_.seed());
    return seed_;
  }
  void set_offset(std::uint64_t) override { TORCH_CHECK(false, "no offset"); }
  std::uint64_t get_offset() const override { return 0; }
  void set_state(const c10::TensorImpl& state) override { inner_.unsafeGetGeneratorImpl()->set_state(state); }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    return inner_.unsafeGetGeneratorImpl()->get_state();
  }

 private:
  Generator* clone_impl() const override {
    auto* copy = new Generator(device().index());
    copy->seed_ = seed_;
    copy->inner_.set_state(inner_.get_state());
    return copy;
  }
  at::Generator inner_;
  std::uint64_t seed_ = c10::default_rng_seed_val;
};

const at::Generator& default_generator(c10::DeviceIndex device) {
  static const std::array<at::Generator, kDevices> generators = {at::make_generator<Generator>(c10::DeviceIndex(0)),
                                                                 at::make_generator<Generator>(c10::DeviceIndex(1))};
  return generators.at(static_cast<std::size_t>(device < 0 ? current : device));
}

class Hooks final : public at::PrivateUse1HooksInterface {
 public:
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return kDevices; }
  void setCurrentDevice(c10::DeviceIndex device) const override { current = device; }
  c10::DeviceIndex getCurrentDevice() const override { return current; }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex device) const override { return default_generator(device); }
  at::Generator getNewGenerator(c10::DeviceIndex device) const override {
    return at::make_generator<Generator>(device < 0 ? current : device);
  }
};

// An error on demand.

std::atomic<std::int64_t> kernels{0};
std::mutex error_mutex;
std::int64_t error_at = -1;
std::string error_text;

void count_kernel() {
  const std::int64_t now = ++kernels;
  const std::lock_guard<std::mutex> lock(error_mutex);
  if (error_at < 0 || now < error_at) return;
  error_at = -1;
  TORCH_CHECK(false, error_text);
}

// Kernels that cannot be copies of the CPU's.

bool is_ours(const Tensor& tensor) { return tensor.device().type() == kKind; }

/// The CPU's view of a tensor, for as long as an Open lives.
Tensor as_cpu(const Tensor& tensor) {
  if (!is_ours(tensor)) return tensor;
  const auto options = at::TensorOptions(tensor.scalar_type());
  if (tensor.numel() == 0) return at::empty_strided(tensor.sizes(), tensor.strides(), options);
  return at::from_blob(tensor.mutable_data_ptr(), tensor.sizes(), tensor.strides(), options);
}

/// The current device while an allocation is made.
c10::DeviceGuard guard_of(std::optional<at::Device> device) {
  return c10::DeviceGuard(device && device->has_index() ? *device : c10::Device(kKind, current));
}

Tensor empty_memory_format(at::IntArrayRef sizes, std::optional<at::ScalarType> type, std::optional<at::Layout>,
                           std::optional<at::Device> device, std::optional<bool>,
                           std::optional<at::MemoryFormat> format) {
  const c10::DeviceGuard guard = guard_of(device);
  return at::detail::empty_generic(sizes, &allocator(), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                   at::dtype_or_default(type), format);
}

Tensor empty_strided(at::IntArrayRef sizes, at::IntArrayRef strides, std::optional<at::ScalarType> type,
                     std::optional<at::Layout>, std::optional<at::Device> device, std::optional<bool>) {
  const c10::DeviceGuard guard = guard_of(device);
  return at::detail::empty_strided_generic(
      sizes, strides, &allocator(), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), at::dtype_or_default(type));
}

Tensor copy_from(const Tensor& from, const Tensor& to, bool) {
  count_kernel();
  const Open open;
  const at::AutoDispatchBelowAutograd below;
  as_cpu(to).copy_(as_cpu(from));
  return to;
}

const Tensor& resize(const Tensor& tensor, c10::SymIntArrayRef symbolic, std::optional<at::MemoryFormat>) {
  const at::IntArrayRef sizes = C10_AS_INTARRAYREF_SLOW(symbolic);
  auto* const impl = tensor.unsafeGetTensorImpl();
  if (impl->sizes() == sizes) return tensor;
  const auto bytes = static_cast<std::size_t>(c10::multiply_integers(sizes)) * tensor.element_size();
  if (impl->unsafe_storage().nbytes() < bytes) {
    const c10::DeviceGuard guard(tensor.device());
    impl->unsafe_storage().set_data_ptr_noswap(allocator().allocate(bytes));
    impl->unsafe_storage().set_nbytes(bytes);
  }
  impl->set_sizes_contiguous(sizes);
  return tensor;
}

Tensor copy_from_and_resize(const Tensor& from, const Tensor& to) {
  const Open open;
  const at::AutoDispatchBelowAutograd below;
  to.resize_(from.sizes());
  as_cpu(to).copy_(as_cpu(from));
  return to;
}

at::Scalar local_scalar_dense(const Tensor& tensor) {
  count_kernel();
  const Open open;
  return as_cpu(tensor).item();
}

Tensor as_strided(const Tensor& tensor, c10::SymIntArrayRef sizes, c10::SymIntArrayRef strides,
                  std::optional<c10::SymInt> offset) {
  return at::native::as_strided_tensorimpl(tensor, C10_AS_INTARRAYREF_SLOW(sizes), C10_AS_INTARRAYREF_SLOW(strides),
                                           offset ? std::optional<std::int64_t>(offset->expect_int()) : std::nullopt);
}

Tensor view(const Tensor& tensor, c10::SymIntArrayRef sizes) {
  return at::native::view(tensor, C10_AS_INTARRAYREF_SLOW(sizes));
}

Tensor reshape_alias(const Tensor& tensor, c10::SymIntArrayRef sizes, c10::SymIntArrayRef strides) {
  return as_strided(tensor, sizes, strides, tensor.sym_storage_offset());
}

/// As between the CPU and CUDA: parameters can move without being replaced.
bool has_compatible_shallow_copy_type(const Tensor&, const Tensor&) { return true; }

OptionalTensor on_cpu(const OptionalTensor& tensor) {
  return tensor && tensor->defined() ? OptionalTensor(tensor->cpu()) : std::nullopt;
}

Tensor convolution(const Tensor& input, const Tensor& weight, const OptionalTensor& bias, c10::SymIntArrayRef stride,
                   c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation, bool transposed,
                   c10::SymIntArrayRef output_padding, c10::SymInt groups) {
  count_kernel();
  return at::convolution_symint(input.cpu(), weight.cpu(), on_cpu(bias), stride, padding, dilation, transposed,
                                output_padding, std::move(groups))
      .to(input.device());
}

std::tuple<Tensor, Tensor, Tensor> convolution_backward(const Tensor& gradient, const Tensor& input,
                                                        const Tensor& weight, c10::SymIntArrayRef stride,
                                                        c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation,
                                                        bool transposed, c10::SymIntArrayRef output_padding,
                                                        c10::SymInt groups, std::array<bool, 3> mask) {
  count_kernel();
  const std::vector<c10::SymInt> bias = {weight.sym_size(transposed ? 1 : 0)};
  const auto [a, b, c] =
      at::convolution_backward_symint(gradient.cpu(), input.cpu(), weight.cpu(), c10::SymIntArrayRef(bias), stride,
                                      padding, dilation, transposed, output_padding, std::move(groups), mask);
  const auto back = [&input](const Tensor& tensor) { return tensor.defined() ? tensor.to(input.device()) : tensor; };
  return {back(a), back(b), back(c)};
}

/// Its schema does not say that it changes the running statistics, so the copies would be forgotten.
std::tuple<Tensor, Tensor, Tensor> batch_norm(const Tensor& input, const OptionalTensor& weight,
                                              const OptionalTensor& bias, const OptionalTensor& mean,
                                              const OptionalTensor& variance, bool training, double momentum,
                                              double eps) {
  count_kernel();
  const OptionalTensor own_mean = on_cpu(mean), own_variance = on_cpu(variance);
  const auto [y, saved_mean, saved_scale] =
      at::native_batch_norm(input.cpu(), on_cpu(weight), on_cpu(bias), own_mean, own_variance, training, momentum, eps);
  if (training && own_mean) Tensor(*mean).copy_(*own_mean);
  if (training && own_variance) Tensor(*variance).copy_(*own_variance);
  const at::Device device = input.device();
  return {y.to(device), saved_mean.to(device), saved_scale.to(device)};
}

// All others: the CPU's, on copies.

/// A tensor that a kernel of `device` could not read, or undefined.
void refuse_other_device(const Tensor& tensor, std::optional<at::Device>& device, const c10::OperatorHandle& op) {
  if (!tensor.defined() || (tensor.is_cpu() && tensor.dim() == 0)) return;
  if (!device) device = tensor.device();
  TORCH_CHECK(*device == tensor.device(), "Expected all tensors to be on the same device, but found at least two, ",
              *device, " and ", tensor.device(), ", in ", op.schema().name());
}

/// The device of the arguments, which have one in common.
at::Device common_device(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments) {
  std::optional<at::Device> device;
  for (const c10::IValue& argument : arguments) {
    if (argument.isTensor()) refuse_other_device(argument.toTensor(), device, op);
    if (argument.isTensorList()) {
      for (const Tensor& tensor : argument.toTensorVector()) refuse_other_device(tensor, device, op);
    }
    if (argument.isOptionalTensorList()) {
      for (const OptionalTensor& tensor : argument.toOptionalTensorVector()) {
        if (tensor) refuse_other_device(*tensor, device, op);
      }
    }
  }
  return device.value_or(c10::Device(kKind, current));
}

bool is_generator(const c10::TypePtr& type) {
  const auto optional = type->cast<c10::OptionalType>();
  return (optional ? optional->getElementType() : type)->kind() == c10::TypeKind::GeneratorType;
}

void run_on_copies(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  count_kernel();
  const auto& declared = op.schema().arguments();
  const at::Device device = common_device(op, torch::jit::last(*stack, declared.size()));
  for (std::size_t i = 0; i < declared.size(); ++i) {
    if (!is_generator(declared[i].type())) continue;
    c10::IValue& given = torch::jit::peek(*stack, i, declared.size());
    const at::Generator own = given.isNone() ? default_generator(device.index()) : given.toGenerator();
    if (const auto* const ours = dynamic_cast<const Generator*>(own.unsafeGetGeneratorImpl())) given = ours->inner();
  }
  const c10::DeviceGuard guard(device.is_cpu() ? c10::Device(kKind, current) : device);
  const Open open;
  at::native::cpu_fallback(op, stack);
}

/// What LibTorch's autocast does on a GPU.
void register_autocast(torch::Library& m) {
#define LOWER(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define FLOAT(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
  AT_FORALL_LOWER_PRECISION_FP(LOWER)
  AT_FORALL_FP32(FLOAT)
#undef LOWER
#undef FLOAT
}

class Backend {
 public:
  Backend()
      : all_(torch::Library::IMPL, "_", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__),
        aten_(torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__),
        all_autocast_(torch::Library::IMPL, "_", c10::DispatchKey::AutocastPrivateUse1, __FILE__, __LINE__),
        autocast_(torch::Library::IMPL, "aten", c10::DispatchKey::AutocastPrivateUse1, __FILE__, __LINE__) {
    c10::register_privateuse1_backend(kName);
    at::RegisterPrivateUse1HooksInterface(&hooks_);
    c10::SetAllocator(kKind, &allocator());
    c10::impl::device_guard_impl_registry[static_cast<std::size_t>(kKind)].store(&guard_);
    all_.fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_copies>());
    aten_.impl("empty.memory_format", &empty_memory_format);
    aten_.impl("empty_strided", &empty_strided);
    aten_.impl("_copy_from", &copy_from);
    aten_.impl("_copy_from_and_resize", &copy_from_and_resize);
    aten_.impl("_local_scalar_dense", &local_scalar_dense);
    aten_.impl("as_strided", &as_strided);
    aten_.impl("view", &view);
    aten_.impl("_reshape_alias", &reshape_alias);
    aten_.impl("resize_", &resize);
    aten_.impl("_has_compatible_shallow_copy_type", &has_compatible_shallow_copy_type);
    aten_.impl("convolution_overrideable", &convolution);
    aten_.impl("convolution_backward_overrideable", &convolution_backward);
    aten_.impl("native_batch_norm", &batch_norm);
    // What LibTorch composes of views for devices without a kernel of their own does not take every order in memory.
    for (const char* name : {"native_group_norm", "native_layer_norm"}) {
      aten_.impl(name, torch::CppFunction::makeFromBoxedFunction<&run_on_copies>());
    }
    all_autocast_.fallback(torch::CppFunction::makeFallthrough());
    register_autocast(autocast_);
  }

 private:
  Hooks hooks_;
  Guard guard_;
  torch::Library all_, aten_, all_autocast_, autocast_;
};

}  // namespace

void install() {
  [[maybe_unused]] static const auto* const backend = new Backend;  // LibTorch keeps its parts
}

void set_memory_limit(std::int64_t bytes) {
  const std::lock_guard<std::mutex> lock(memory().mutex);
  memory().limit = bytes > 0 ? bytes : kNoLimit;
  memory().peak = *std::max_element(memory().held.begin(), memory().held.end());
}

std::int64_t memory_held() {
  const std::lock_guard<std::mutex> lock(memory().mutex);
  return memory().held[0] + memory().held[1];
}

std::int64_t memory_peak() {
  const std::lock_guard<std::mutex> lock(memory().mutex);
  return memory().peak;
}

std::int64_t kernels_run() { return kernels; }

void fail_after(std::int64_t count, const std::string& error) {
  const std::lock_guard<std::mutex> lock(error_mutex);
  error_at = error.empty() ? -1 : kernels + count;
  error_text = error;
}

}  // namespace tests::accelerator

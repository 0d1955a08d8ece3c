#include "tests/support/torch/pretended_kernels.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/Functions.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/jit_type.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/DeviceGuard.h>
#include <c10/util/accumulate.h>
#include <torch/library.h>

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/support/torch/pretended_accelerator.h"
#include "tests/support/torch/pretended_attention.h"
#include "tests/support/torch/pretended_graph.h"
#include "tests/support/torch/pretended_memory.h"
#include "tests/support/torch/pretended_streams.h"

namespace tests::accelerator {

using at::Tensor;

thread_local int InKernel::depth = 0;

std::vector<Tensor> run_kernel(c10::DeviceIndex device, const std::vector<Tensor>& arguments,
                               const std::function<std::vector<Tensor>()>& compute) {
  const std::vector<Tensor> results = compute();
  if (InKernel::now() || !is_captured(device)) return results;
  std::vector<Tensor> kept, memory;
  for (const Tensor& tensor : results) kept.push_back(same_memory(tensor));
  for (const std::vector<Tensor>* tensors : {&arguments, &std::as_const(kept)}) {
    for (const Tensor& tensor : *tensors) {
      if (tensor.defined()) memory.push_back(tensor);
    }
  }
  const auto again = [compute, kept] {
    const std::vector<Tensor> now = compute();
    for (std::size_t i = 0; i < kept.size(); ++i) {
      if (kept[i].defined()) as_cpu(kept[i]).copy_(as_cpu(now[i]));
    }
  };
  note_kernel(again, memory);
  return results;
}

std::vector<Tensor> captured(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> kept;
  for (const Tensor& tensor : tensors) kept.push_back(same_memory(tensor));
  return kept;
}

namespace {

using OptionalTensor = std::optional<Tensor>;

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
  return generators.at(static_cast<std::size_t>(device < 0 ? current_device() : device));
}

class Hooks final : public at::PrivateUse1HooksInterface {
 public:
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return kDevices; }
  void setCurrentDevice(c10::DeviceIndex device) const override { set_current_device(device); }
  c10::DeviceIndex getCurrentDevice() const override { return current_device(); }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex device) const override { return default_generator(device); }
  at::Generator getNewGenerator(c10::DeviceIndex device) const override {
    return at::make_generator<Generator>(device < 0 ? current_device() : device);
  }
  at::Allocator* getPinnedMemoryAllocator() const override { return &pinned_allocator(); }
  bool isPinnedPtr(const void* address) const override { return is_page_locked(address); }
};

// An error on demand.

std::atomic<std::int64_t> kernels{0}, reads{0};
std::mutex error_mutex;
std::int64_t error_at = -1;
std::string error_text;

// Kernels that cannot be copies of the CPU's.

bool is_ours(const Tensor& tensor) { return tensor.device().type() == kKind; }

/// The current device while an allocation is made.
c10::DeviceGuard guard_of(std::optional<at::Device> device) {
  return c10::DeviceGuard(device && device->has_index() ? *device : c10::Device(kKind, current_device()));
}

Tensor empty_memory_format(at::IntArrayRef sizes, std::optional<at::ScalarType> type, std::optional<at::Layout>,
                           std::optional<at::Device> device, std::optional<bool>,
                           std::optional<at::MemoryFormat> format) {
  const c10::DeviceGuard guard = guard_of(device);
  return at::detail::empty_generic(sizes, &device_allocator(), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                   at::dtype_or_default(type), format);
}

Tensor empty_strided(at::IntArrayRef sizes, at::IntArrayRef strides, std::optional<at::ScalarType> type,
                     std::optional<at::Layout>, std::optional<at::Device> device, std::optional<bool>) {
  const c10::DeviceGuard guard = guard_of(device);
  return at::detail::empty_strided_generic(sizes, strides, &device_allocator(),
                                           c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                           at::dtype_or_default(type));
}

Tensor capture_copy(const Tensor& from, const Tensor& to) {
  TORCH_CHECK(is_ours(from) && is_ours(to),
              "CUDA error: operation not permitted when stream is capturing (a copy from or to the CPU)");
  const std::vector<Tensor> both = captured({from, to});
  run_kernel(to.device().index(), both, [both] {
    count_kernel();
    const at::AutoDispatchBelowAutograd below;
    as_cpu(both[1]).copy_(as_cpu(both[0]));
    return std::vector<Tensor>();
  });
  return to;
}

Tensor copy_from(const Tensor& from, const Tensor& to, bool non_blocking) {
  note_use(from);
  note_use(to);
  const c10::DeviceIndex device = is_ours(to) ? to.device().index() : from.device().index();
  const Tensor& other = is_ours(to) ? from : to;
  if (is_ours(from) && is_ours(to) && from.device() != to.device()) run_queued(from.device().index());
  if (!InKernel::now() && is_captured(device)) return capture_copy(from, to);
  if (non_blocking && (is_ours(other) || is_page_locked(other.const_data_ptr()))) {
    enqueue_copy(device, from, to);
    return to;
  }
  count_kernel();
  if (!is_ours(to) && !InKernel::now()) ++reads;
  run_queued(device);
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
    impl->unsafe_storage().set_data_ptr_noswap(device_allocator().allocate(bytes));
    impl->unsafe_storage().set_nbytes(bytes);
  }
  impl->set_sizes_contiguous(sizes);
  return tensor;
}

Tensor copy_from_and_resize(const Tensor& from, const Tensor& to) {
  run_queued(is_ours(to) ? to.device().index() : from.device().index());
  const at::AutoDispatchBelowAutograd below;
  to.resize_(from.sizes());
  as_cpu(to).copy_(as_cpu(from));
  return to;
}

at::Scalar local_scalar_dense(const Tensor& tensor) {
  refuse_while_captured(tensor.device().index(), "a value is read");
  count_kernel();
  ++reads;
  note_use(tensor);
  run_queued(tensor.device().index());
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

OptionalTensor on_cpu(const Tensor& tensor) { return tensor.defined() ? OptionalTensor(tensor.cpu()) : std::nullopt; }

Tensor or_undefined(const OptionalTensor& tensor) { return tensor.value_or(Tensor()); }

std::vector<c10::SymInt> owned(c10::SymIntArrayRef numbers) { return {numbers.begin(), numbers.end()}; }

Tensor convolution(const Tensor& input, const Tensor& weight, const OptionalTensor& bias, c10::SymIntArrayRef stride,
                   c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation, bool transposed,
                   c10::SymIntArrayRef output_padding, c10::SymInt groups) {
  const std::vector<Tensor> x = captured({input, weight, or_undefined(bias)});
  const auto compute = [=, stride = owned(stride), padding = owned(padding), dilation = owned(dilation),
                        output_padding = owned(output_padding)] {
    count_kernel();
    const InKernel inside;
    return std::vector<Tensor>{at::convolution_symint(x[0].cpu(), x[1].cpu(), on_cpu(x[2]), stride, padding, dilation,
                                                      transposed, output_padding, groups)
                                   .to(x[0].device())};
  };
  return run_kernel(input.device().index(), x, compute).front();
}

std::tuple<Tensor, Tensor, Tensor> convolution_backward(const Tensor& gradient, const Tensor& input,
                                                        const Tensor& weight, c10::SymIntArrayRef stride,
                                                        c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation,
                                                        bool transposed, c10::SymIntArrayRef output_padding,
                                                        c10::SymInt groups, std::array<bool, 3> mask) {
  const std::vector<Tensor> x = captured({gradient, input, weight});
  const std::vector<c10::SymInt> bias = {weight.sym_size(transposed ? 1 : 0)};
  const auto compute = [=, stride = owned(stride), padding = owned(padding), dilation = owned(dilation),
                        output_padding = owned(output_padding)] {
    count_kernel();
    const InKernel inside;
    const auto [a, b, c] =
        at::convolution_backward_symint(x[0].cpu(), x[1].cpu(), x[2].cpu(), c10::SymIntArrayRef(bias), stride, padding,
                                        dilation, transposed, output_padding, groups, mask);
    const auto back = [&x](const Tensor& tensor) { return tensor.defined() ? tensor.to(x[1].device()) : tensor; };
    return std::vector<Tensor>{back(a), back(b), back(c)};
  };
  const std::vector<Tensor> y = run_kernel(input.device().index(), x, compute);
  return {y[0], y[1], y[2]};
}

/// Its schema does not say that it changes the running statistics, so the copies would be forgotten.
std::tuple<Tensor, Tensor, Tensor> batch_norm(const Tensor& input, const OptionalTensor& weight,
                                              const OptionalTensor& bias, const OptionalTensor& mean,
                                              const OptionalTensor& variance, bool training, double momentum,
                                              double eps) {
  const std::vector<Tensor> x =
      captured({input, or_undefined(weight), or_undefined(bias), or_undefined(mean), or_undefined(variance)});
  const auto compute = [=] {
    count_kernel();
    const InKernel inside;
    const OptionalTensor own_mean = on_cpu(x[3]), own_variance = on_cpu(x[4]);
    const auto [y, saved_mean, saved_scale] =
        at::native_batch_norm(x[0].cpu(), on_cpu(x[1]), on_cpu(x[2]), own_mean, own_variance, training, momentum, eps);
    if (training && own_mean) Tensor(x[3]).copy_(*own_mean);
    if (training && own_variance) Tensor(x[4]).copy_(*own_variance);
    const at::Device device = x[0].device();
    return std::vector<Tensor>{y.to(device), saved_mean.to(device), saved_scale.to(device)};
  };
  const std::vector<Tensor> y = run_kernel(input.device().index(), x, compute);
  return {y[0], y[1], y[2]};
}

// All others: the CPU's, on copies.

/// A tensor that a kernel of `device` could not read, or undefined.
void refuse_other_device(const Tensor& tensor, std::optional<at::Device>& device, const c10::OperatorHandle& op) {
  if (!tensor.defined() || (tensor.is_cpu() && tensor.dim() == 0)) return;
  note_use(tensor);
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
  return device.value_or(c10::Device(kKind, current_device()));
}

bool is_generator(const c10::TypePtr& type) {
  const auto optional = type->cast<c10::OptionalType>();
  return (optional ? optional->getElementType() : type)->kind() == c10::TypeKind::GeneratorType;
}

/// The detour over the CPU resizes outputs that a device's kernel would make itself; LibTorch warns of that.
class NoWarnings final : public c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

void run_on_copies(const c10::OperatorHandle& op, torch::jit::Stack* stack);

/// The tensors that an operation made: those that are not its arguments.
std::vector<Tensor> made_by(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  const auto& returned = op.schema().returns();
  std::vector<Tensor> made;
  for (std::size_t i = 0; i < returned.size(); ++i) {
    const c10::IValue& value = torch::jit::peek(stack, i, returned.size());
    if (returned[i].alias_info() != nullptr) continue;
    if (value.isTensor()) made.push_back(value.toTensor());
    if (!value.isTensorList()) continue;
    for (const Tensor& tensor : value.toTensorVector()) made.push_back(tensor);
  }
  return made;
}

void capture_on_copies(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  TORCH_CHECK(!op.hasTag(at::Tag::dynamic_output_shape) && !op.hasTag(at::Tag::data_dependent_output),
              "CUDA error: operation not permitted when stream is capturing (", op.schema().name(),
              " returns what depends on values)");
  std::vector<Tensor> memory;
  torch::jit::Stack arguments;
  for (const c10::IValue& argument : torch::jit::last(*stack, op.schema().arguments().size())) {
    arguments.push_back(same_memory(argument, memory));
  }
  {
    const InKernel inside;
    at::native::cpu_fallback(op, stack);
  }
  std::vector<Tensor> kept;
  for (const Tensor& tensor : made_by(op, *stack)) {
    kept.push_back(same_memory(tensor));
    if (kept.back().defined()) memory.push_back(kept.back());
  }
  const auto again = [op, arguments, kept] {
    torch::jit::Stack own = arguments;
    run_on_copies(op, &own);
    const std::vector<Tensor> made = made_by(op, own);
    for (std::size_t i = 0; i < kept.size(); ++i) {
      if (kept[i].defined()) as_cpu(kept[i]).copy_(as_cpu(made[i]));
    }
  };
  note_kernel(again, memory);
}

/// What CUDA refuses under deterministic algorithms, of what roux calls; as LibTorch 2.11 names it.
void refuse_nondeterministic(const c10::OperatorHandle& op) {
  static const std::map<std::string, std::string> kNames = {
      {"aten::_adaptive_avg_pool2d_backward", "adaptive_avg_pool2d_backward_cuda"},
      {"aten::histc", "_histc_cuda with floating point input"}};
  const auto found = kNames.find(op.schema().name());
  if (found != kNames.end()) at::globalContext().alertNotDeterministic(found->second);
}

void run_on_copies(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  refuse_nondeterministic(op);
  static NoWarnings none;
  const c10::WarningUtils::WarningHandlerGuard quiet(&none);
  count_kernel();
  const auto& declared = op.schema().arguments();
  const at::Device device = common_device(op, torch::jit::last(*stack, declared.size()));
  for (std::size_t i = 0; i < declared.size(); ++i) {
    if (!is_generator(declared[i].type())) continue;
    c10::IValue& given = torch::jit::peek(*stack, i, declared.size());
    const at::Generator own = given.isNone() ? default_generator(device.index()) : given.toGenerator();
    if (const auto* const ours = dynamic_cast<const Generator*>(own.unsafeGetGeneratorImpl())) given = ours->inner();
  }
  const c10::DeviceGuard guard(device.is_cpu() ? c10::Device(kKind, current_device()) : device);
  run_queued(current_device());
  if (!InKernel::now() && is_captured(current_device())) return capture_on_copies(op, stack);
  const InKernel inside;
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
    c10::SetAllocator(kKind, &device_allocator());
    c10::impl::device_guard_impl_registry[static_cast<std::size_t>(kKind)].store(&device_guard());
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
    register_attention(aten_);
    // What LibTorch composes of views for devices without a kernel of their own does not take every order in memory.
    // Of the gradient of SiLU it makes several matrices.
    for (const char* name : {"native_group_norm", "native_layer_norm", "silu_backward"}) {
      aten_.impl(name, torch::CppFunction::makeFromBoxedFunction<&run_on_copies>());
    }
    all_autocast_.fallback(torch::CppFunction::makeFallthrough());
    register_autocast(autocast_);
  }

 private:
  Hooks hooks_;
  torch::Library all_, aten_, all_autocast_, autocast_;
};

}  // namespace

void count_kernel() {
  const std::int64_t now = ++kernels;
  const std::lock_guard<std::mutex> lock(error_mutex);
  if (error_at < 0 || now < error_at) return;
  error_at = -1;
  TORCH_CHECK(false, error_text);
}

std::function<void()> keep_generators(c10::DeviceIndex device) {
  // An operation that is not told its generator draws from the CPU's.
  std::vector<std::pair<at::Generator, Tensor>> states;
  for (const at::Generator& generator : {default_generator(device), at::detail::getDefaultCPUGenerator()}) {
    states.emplace_back(generator, generator.get_state());
  }
  return [states]() mutable {
    for (auto& [generator, state] : states) generator.set_state(state);
  };
}

void install() {
  [[maybe_unused]] static const auto* const backend = new Backend;  // LibTorch keeps its parts
}

const at::Generator& inner_generator(c10::DeviceIndex device) {
  return dynamic_cast<const Generator*>(default_generator(device).unsafeGetGeneratorImpl())->inner();
}

std::int64_t kernels_run() { return kernels; }

std::int64_t values_read() { return reads; }

void fail_after(std::int64_t count, const std::string& error) {
  const std::lock_guard<std::mutex> lock(error_mutex);
  error_at = error.empty() ? -1 : kernels + count;
  error_text = error;
}

}  // namespace tests::accelerator

#include "components/tensor/meta_pass.h"

#include <ATen/ExpandUtils.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/Reduction.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/native_group_norm.h>
#include <ATen/ops/result_type.h>
#include <c10/core/Allocator.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "components/kernels/processor.h"
#include "runner/core/error.h"

namespace components {
namespace {

using at::IntArrayRef;
using at::Tensor;
using OptionalTensor = std::optional<Tensor>;
using Three = std::tuple<Tensor, Tensor, Tensor>;

// Above autograd, as the CPU's autocast is, and of no backend that is here or pretended in a test.
constexpr c10::DispatchKey kKey = c10::DispatchKey::AutocastIPU;

thread_local MetaPass::Observer observer;
thread_local bool stands_for_gpu = false;
thread_local std::map<const c10::TensorImpl*, std::pair<Tensor, Tensor>> lower_weights;  // the weight and its copy

void give_back(void* context) {
  const std::unique_ptr<const std::int64_t> bytes(static_cast<const std::int64_t*>(context));
  if (observer) observer(-*bytes);
}
void give_back_nothing(void*) {}

/// Replaces the meta device's own allocator, which allocates and reports nothing. Memory that was handed out outside of
/// a pass is not reported when it is freed either.
class TellingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    if (!observer) return {nullptr, nullptr, &give_back_nothing, c10::Device(c10::kMeta)};
    observer(static_cast<std::int64_t>(bytes));
    return {nullptr, new std::int64_t(static_cast<std::int64_t>(bytes)), &give_back, c10::Device(c10::kMeta)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &give_back; }
  void copy_data(void*, const void*, std::size_t) const override {}
};

// Autocast, of the operations that at/autocast_mode.cpp lists for the CPU.

Tensor cast(const Tensor& tensor, at::ScalarType type) {
  const bool eligible = tensor.defined() && tensor.is_meta() && tensor.is_floating_point() &&
                        tensor.scalar_type() != at::kDouble && tensor.scalar_type() != type;
  if (!eligible) return tensor;
  const bool cached = type != at::kFloat && tensor.scalar_type() == at::kFloat && tensor.requires_grad() &&
                      tensor.is_leaf() && !tensor.is_view() && at::autocast::is_autocast_cache_enabled();
  if (!cached) return tensor.to(type);
  auto& [weight, copy] = lower_weights[tensor.unsafeGetTensorImpl()];
  if (!copy.defined()) {
    weight = tensor;
    copy = tensor.to(type);
  }
  return copy;
}

/// Whether oneDNN computes with numbers of this type on this processor; the answer is LibTorch's own.
bool is_known_to_onednn(at::ScalarType type) {
  const auto ask = [](const char* name) {
    return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<bool()>().call();
  };
  static const bool bf16 = ask("mkldnn::_is_mkldnn_bf16_supported"), fp16 = ask("mkldnn::_is_mkldnn_fp16_supported");
  return type == at::kBFloat16 ? bf16 : type == at::kHalf ? fp16 : true;
}

/// The sums of a product that oneDNN adds up in float32 beside a bfloat16 result: without AVX-512 BF16.
Tensor sums_of(const Tensor& product) {
  const bool emulated = !stands_for_gpu && product.defined() && product.scalar_type() == at::kBFloat16 &&
                        !kernels::processor().avx512_bf16 && is_known_to_onednn(at::kBFloat16);
  return emulated ? at::empty({product.numel()}, product.options().dtype(at::kFloat)) : Tensor();
}

enum class Operation { kProduct, kConvolution, kLoss };

template <Operation kind>
void cast_arguments(const c10::OperatorHandle& operation, c10::DispatchKeySet, torch::jit::Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard once(kKey);
  if (at::autocast::is_autocast_enabled(at::kCPU)) {
    const at::ScalarType type = kind != Operation::kLoss ? at::autocast::get_autocast_dtype(at::kCPU) : at::kFloat;
    for (auto argument = stack->end() - static_cast<std::ptrdiff_t>(operation.schema().arguments().size());
         argument != stack->end(); ++argument) {
      if (argument->isTensor()) *argument = cast(argument->toTensor(), type);
    }
  }
  operation.callBoxed(stack);
  if (kind == Operation::kProduct && stack->back().isTensor()) sums_of(stack->back().toTensor());
}

// What the CPU does in another way than the meta device.

Tensor attention(const Tensor& query, const Tensor& key, const Tensor& value, const OptionalTensor& mask,
                 double dropout, bool is_causal, std::optional<double> scale, bool) {
  const c10::impl::ExcludeDispatchKeyGuard once(kKey);
  const bool lower = at::autocast::is_autocast_enabled(at::kCPU);
  const auto in = [&](const Tensor& t) { return lower ? cast(t, at::autocast::get_autocast_dtype(at::kCPU)) : t; };
  return std::get<0>(
      at::_scaled_dot_product_flash_attention_for_cpu(in(query), in(key), in(value), dropout, is_causal, mask, scale));
}

Tensor group_norm(const Tensor& x, std::int64_t groups, const OptionalTensor& weight, const OptionalTensor& bias,
                  double eps, bool) {
  const c10::impl::ExcludeDispatchKeyGuard once(kKey);
  const Tensor dense = x.contiguous(x.suggest_memory_format());
  return std::get<0>(
      at::native_group_norm(dense, weight, bias, x.size(0), x.size(1), x.numel() / x.size(0) / x.size(1), groups, eps));
}

/// The mean of 16-bit pixels is one of float32.
Tensor adaptive_avg_pool2d(const Tensor& x, IntArrayRef size) {
  const c10::impl::ExcludeDispatchKeyGuard once(kKey);
  const bool is_mean = size[0] == 1 && size[1] == 1;
  const Tensor wide = is_mean && x.element_size() == 2 ? at::empty_like(x, x.options().dtype(at::kFloat)) : Tensor();
  return at::adaptive_avg_pool2d(x, size);
}

/// The gradient of a table as rows that are added to one that is there, without memory of its own.
class SparseRows final : public torch::autograd::Node {
 public:
  torch::autograd::variable_list apply(torch::autograd::variable_list&&) override {
    return torch::autograd::variable_list(1);
  }
};

Tensor embedding(const Tensor& weight, const Tensor& indices, std::int64_t padding, bool by_frequency, bool sparse) {
  const c10::impl::ExcludeDispatchKeyGuard once(kKey);
  const bool has_graph = at::GradMode::is_enabled() && weight.requires_grad();
  if (!sparse || !has_graph) return at::embedding(weight, indices, padding, by_frequency, sparse);
  Tensor rows = at::embedding(weight.detach(), indices, padding, by_frequency, false);
  const std::shared_ptr<SparseRows> node(new SparseRows, torch::autograd::deleteNode);
  node->set_next_edges({torch::autograd::impl::gradient_edge(weight)});
  torch::autograd::set_history(rows, node);
  return rows;
}

// Shapes that LibTorch has for Python alone. Each allocates what the CPU's kernel does.

Tensor like(const Tensor& x) { return at::empty_like(x); }
Tensor like(const Tensor& x, bool wanted) { return wanted ? at::empty_like(x) : Tensor(); }
Tensor vector(std::int64_t size, const Tensor& x, at::ScalarType type) {
  return at::empty({size}, x.options().dtype(type));
}

/// Of statistics: float32 wherever weights or numbers are.
at::ScalarType statistics_type(const Tensor& x, const OptionalTensor& weight) {
  return weight && weight->defined() ? weight->scalar_type() : x.scalar_type();
}

Three of_parameters(const Tensor& dx, const OptionalTensor& weight, std::int64_t size, const Tensor& x,
                    std::array<bool, 3> wanted) {
  const auto type = statistics_type(x, weight);
  return {dx, wanted[1] ? vector(size, x, type) : Tensor(), wanted[2] ? vector(size, x, type) : Tensor()};
}

Tensor relu(const Tensor& x) { return like(x); }
Tensor& relu_(Tensor& x) { return x; }

Three layer_norm(const Tensor& x, IntArrayRef shape, const OptionalTensor& weight, const OptionalTensor&, double) {
  std::vector<std::int64_t> rows = x.sizes().vec();
  for (std::size_t i = 0; i < shape.size(); ++i) rows[rows.size() - 1 - i] = 1;
  const auto options = x.options().dtype(statistics_type(x, weight));
  return {at::empty_like(x, at::MemoryFormat::Contiguous), at::empty(rows, options), at::empty(rows, options)};
}
Three layer_norm_backward(const Tensor&, const Tensor& x, IntArrayRef shape, const Tensor&, const Tensor&,
                          const OptionalTensor& weight, const OptionalTensor&, std::array<bool, 3> wanted) {
  return of_parameters(like(x, wanted[0]), weight, c10::multiply_integers(shape), x, wanted);
}

Three batch_norm(const Tensor& x, const OptionalTensor& weight, const OptionalTensor&, const OptionalTensor&,
                 const OptionalTensor&, bool training, double, double) {
  const std::int64_t channels = training ? x.size(1) : 0;
  const auto type = statistics_type(x, weight);
  return {like(x), vector(channels, x, type), vector(channels, x, type)};
}
Three batch_norm_backward(const Tensor&, const Tensor& x, const OptionalTensor& weight, const OptionalTensor&,
                          const OptionalTensor&, const OptionalTensor&, const OptionalTensor&, bool, double,
                          std::array<bool, 3> wanted) {
  const Tensor first = like(x, wanted[0]);  // a second one is made before this one is freed
  return of_parameters(like(x, wanted[0]), weight, x.size(1), x, wanted);
}

Three group_norm_kernel(const Tensor& x, const OptionalTensor& weight, const OptionalTensor&, std::int64_t samples,
                        std::int64_t, std::int64_t, std::int64_t groups, double) {
  const auto options = x.options().dtype(statistics_type(x, weight));
  return {like(x), at::empty({samples, groups}, options), at::empty({samples, groups}, options)};
}
Three group_norm_backward(const Tensor&, const Tensor& x, const Tensor&, const Tensor&, const OptionalTensor& weight,
                          std::int64_t, std::int64_t channels, std::int64_t, std::int64_t, std::array<bool, 3> wanted) {
  return of_parameters(like(x, wanted[0]), weight, channels, x, wanted);
}

at::MemoryFormat format_of(const Tensor& x, const Tensor& weight) {
  const auto is_last = [](const Tensor& t) { return t.suggest_memory_format() == at::MemoryFormat::ChannelsLast; };
  return is_last(x) || is_last(weight) ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
}

/// Where oneDNN does not know the type, LibTorch multiplies matrices on the CPU: the whole batch, with its windows laid
/// side by side.
Tensor windows_of(const Tensor& x, const Tensor& weight, std::int64_t groups, const Tensor& y) {
  if (stands_for_gpu || is_known_to_onednn(x.scalar_type())) return {};
  return at::empty({groups * weight.numel() / weight.size(0), y.numel() / y.size(1)}, x.options());
}

Tensor convolution(const Tensor& x, const Tensor& weight, const OptionalTensor&, IntArrayRef stride,
                   IntArrayRef padding, IntArrayRef dilation, bool transposed, IntArrayRef output_padding,
                   std::int64_t groups) {
  std::vector<std::int64_t> shape = {x.size(0), transposed ? weight.size(1) * groups : weight.size(0)};
  for (std::int64_t i = 2; i < x.dim(); ++i) {
    const auto at = [i](IntArrayRef of) { return of[of.size() == 1 ? 0 : static_cast<std::size_t>(i - 2)]; };
    const std::int64_t reach = at(dilation) * (weight.size(i) - 1);
    shape.push_back(transposed ? (x.size(i) - 1) * at(stride) - 2 * at(padding) + reach + at(output_padding) + 1
                               : (x.size(i) + 2 * at(padding) - reach - 1) / at(stride) + 1);
  }
  Tensor y = at::empty(shape, x.options(), format_of(x, weight));
  const Tensor windows = windows_of(x, weight, groups, y);
  return y;
}
Three convolution_backward(const Tensor& dy, const Tensor& x, const Tensor& weight, at::OptionalIntArrayRef,
                           IntArrayRef, IntArrayRef, IntArrayRef, bool, IntArrayRef, std::int64_t groups,
                           std::array<bool, 3> wanted) {
  const Tensor dense = dy.contiguous(format_of(x, weight));
  const Tensor windows = windows_of(x, weight, groups, dy);
  const auto dx = wanted[0] ? at::empty(x.sizes(), x.options(), format_of(x, weight)) : Tensor();
  return {dx, like(weight, wanted[1]), wanted[2] ? vector(dy.size(1), x, x.scalar_type()) : Tensor()};
}

Tensor index_select(const Tensor& x, std::int64_t dim, const Tensor& index) {
  std::vector<std::int64_t> shape = x.sizes().vec();
  shape[static_cast<std::size_t>(at::maybe_wrap_dim(dim, x.dim()))] = index.numel();
  return at::empty(shape, x.options());
}
Tensor embedding_backward(const Tensor& gradient, const Tensor&, std::int64_t rows, std::int64_t, bool) {
  return at::empty({rows, gradient.size(-1)}, gradient.options());
}

Tensor pool(const Tensor& x, IntArrayRef size) {
  std::vector<std::int64_t> shape = x.sizes().vec();
  std::copy(size.begin(), size.end(), shape.end() - 2);
  return at::empty(shape, x.options(), x.suggest_memory_format());
}
Tensor pool_backward(const Tensor&, const Tensor& x) { return like(x); }

std::tuple<Tensor, Tensor> flash_attention(const Tensor& query, const Tensor&, const Tensor& value, double, bool,
                                           const OptionalTensor&, std::optional<double>) {
  const std::int64_t batch = query.size(0), heads = query.size(1), positions = query.size(2);
  return {at::empty({batch, positions, heads, value.size(3)}, query.options()).transpose(1, 2),
          at::empty({batch, positions, heads}, query.options().dtype(at::kFloat)).transpose(1, 2)};
}
Three flash_attention_backward(const Tensor&, const Tensor& query, const Tensor& key, const Tensor& value,
                               const Tensor&, const Tensor&, double, bool, const OptionalTensor&,
                               std::optional<double>) {
  const auto gradient = [](const Tensor& of) {
    return at::empty({of.size(0), of.size(2), of.size(1), of.size(3)}, of.options()).transpose(1, 2);
  };
  return {gradient(query), gradient(key), gradient(value)};
}

Tensor mse_backward(const Tensor&, const Tensor& x, const Tensor&, std::int64_t) { return like(x); }

Tensor roll(const Tensor& x, c10::SymIntArrayRef, IntArrayRef) { return like(x); }
/// With what the gradient is made of.
std::tuple<Tensor, Tensor> log_sigmoid(const Tensor& x) { return {like(x), like(x)}; }
Tensor log_sigmoid_backward(const Tensor&, const Tensor& x, const Tensor&) { return like(x); }

/// An operation on each element that writes into `out`, which its functional form has made without a size.
Tensor& into(const Tensor& x, Tensor& out) {
  out.resize_(x.sizes());
  return out;
}

std::tuple<Tensor, Tensor> nll_loss2d(const Tensor& x, const Tensor& target, const OptionalTensor&,
                                      std::int64_t reduction, std::int64_t) {
  const IntArrayRef shape = reduction == at::Reduction::None ? target.sizes() : IntArrayRef();
  return {at::empty(shape, x.options()), at::empty({}, x.options())};
}
Tensor nll_loss2d_backward(const Tensor&, const Tensor& x, const Tensor&, const OptionalTensor&, std::int64_t,
                           std::int64_t, const Tensor&) {
  return like(x);
}

/// One of both may be a number, on the CPU.
Tensor where(const Tensor& condition, const Tensor& x, const Tensor& y) {
  const auto shape = at::infer_size(condition.sizes(), at::infer_size(x.sizes(), y.sizes()));
  return at::empty(shape, at::TensorOptions(c10::kMeta).dtype(at::result_type(x, y)));
}

/// Makes LibTorch's dispatcher pass by here, in threads that ask for it, and adds to the meta device. For good.
class Additions {
 public:
  Additions()
      : others_(torch::Library::IMPL, "_", kKey, __FILE__, __LINE__),
        ways_(torch::Library::IMPL, "aten", kKey, __FILE__, __LINE__),
        shapes_(torch::Library::IMPL, "aten", c10::DispatchKey::Meta, __FILE__, __LINE__) {
    others_.fallback(torch::CppFunction::makeFallthrough());
    for (const char* name : {"bmm", "mm", "baddbmm", "addmm", "addbmm", "linear", "matmul"}) {
      ways_.impl(name, torch::CppFunction::makeFromBoxedFunction<&cast_arguments<Operation::kProduct>>());
    }
    for (const char* name :
         {"conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d.input", "conv_transpose3d.input"}) {
      ways_.impl(name, torch::CppFunction::makeFromBoxedFunction<&cast_arguments<Operation::kConvolution>>());
    }
    for (const char* name : {"mse_loss", "l1_loss", "huber_loss", "smooth_l1_loss", "nll_loss", "cross_entropy_loss",
                             "kl_div", "binary_cross_entropy_with_logits"}) {
      ways_.impl(name, torch::CppFunction::makeFromBoxedFunction<&cast_arguments<Operation::kLoss>>());
    }
    ways_.impl("scaled_dot_product_attention", &attention);
    ways_.impl("group_norm", &group_norm);
    ways_.impl("adaptive_avg_pool2d", &adaptive_avg_pool2d);
    ways_.impl("embedding", &embedding);
    shapes_.impl("relu", &relu);
    shapes_.impl("relu_", &relu_);
    shapes_.impl("native_layer_norm", &layer_norm);
    shapes_.impl("native_layer_norm_backward", &layer_norm_backward);
    shapes_.impl("native_batch_norm", &batch_norm);
    shapes_.impl("native_batch_norm_backward", &batch_norm_backward);
    shapes_.impl("native_group_norm", &group_norm_kernel);
    shapes_.impl("native_group_norm_backward", &group_norm_backward);
    shapes_.impl("convolution", &convolution);
    shapes_.impl("convolution_backward", &convolution_backward);
    shapes_.impl("index_select", &index_select);
    shapes_.impl("embedding_dense_backward", &embedding_backward);
    shapes_.impl("_adaptive_avg_pool2d", &pool);
    shapes_.impl("_adaptive_avg_pool2d_backward", &pool_backward);
    shapes_.impl("_scaled_dot_product_flash_attention_for_cpu", &flash_attention);
    shapes_.impl("_scaled_dot_product_flash_attention_for_cpu_backward", &flash_attention_backward);
    shapes_.impl("mse_loss_backward", &mse_backward);
    shapes_.impl("log_sigmoid_forward", &log_sigmoid);
    shapes_.impl("log_sigmoid_backward", &log_sigmoid_backward);
    shapes_.impl("roll", &roll);
    shapes_.impl("nll_loss2d_forward", &nll_loss2d);
    shapes_.impl("nll_loss2d_backward", &nll_loss2d_backward);
    shapes_.impl("abs.out", &into);
    shapes_.impl("where.self", &where);
    shapes_.impl("logical_not.out", &into);
    c10::SetAllocator(c10::kMeta, &allocator_, 1);
  }

 private:
  TellingAllocator allocator_;
  torch::Library others_, ways_, shapes_;
};

}  // namespace

MetaPass::MetaPass(Observer observe, bool for_gpu) {
  [[maybe_unused]] static const Additions* const additions = new Additions;  // LibTorch keeps the allocator
  RUNNER_ASSERT(!observer, "one pass is measured at a time");
  observer = std::move(observe);
  stands_for_gpu = for_gpu;
  c10::impl::tls_set_dispatch_key_included(kKey, true);
  c10::impl::tls_set_dispatch_key_excluded(kKey, false);  // as every autocast is by default
}

MetaPass::~MetaPass() {
  c10::impl::tls_set_dispatch_key_excluded(kKey, true);
  c10::impl::tls_set_dispatch_key_included(kKey, false);
  clear_autocast_cache();
  observer = nullptr;
  stands_for_gpu = false;
}

bool MetaPass::is_on() { return static_cast<bool>(observer); }

bool MetaPass::is_for_gpu() { return stands_for_gpu; }

void MetaPass::clear_autocast_cache() { lower_weights.clear(); }

}  // namespace components

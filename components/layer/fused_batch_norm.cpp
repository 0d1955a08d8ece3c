// C: channels   N: rows, the pixels of all samples

#include "components/layer/fused_batch_norm.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "components/kernels/images/images.h"
#include "components/ops/kernel_policy.h"
#include "components/ops/torch_bridge.h"
#include "components/tensor/meta_pass.h"
#include "components/tensor/tensors.h"
#include "runner/core/error.h"

namespace components::layer {
namespace {

using kernels::Bf16;
using kernels::data;
using kernels::parallel_for_rows;
using torch::autograd::SavedVariable;
using torch::autograd::variable_list;

bool is_dense(const at::Tensor& x) {
  return x.dim() == 2 ? x.is_contiguous() : x.dim() == 4 && x.is_contiguous(at::MemoryFormat::ChannelsLast);
}

/// Two sums by channel that pieces of the rows make by themselves.
class PairSums {
 public:
  explicit PairSums(std::int64_t width)
      : width_(width), sums_(at::zeros({at::get_num_threads(), 2, width}, at::TensorOptions().dtype(at::kDouble))) {}
  double* first(std::int64_t piece) const { return sums_.data_ptr<double>() + 2 * piece * width_; }
  double* second(std::int64_t piece) const { return first(piece) + width_; }
  /// Everything in the first piece's place.
  void add_up() const {
    for (std::int64_t piece = 1; piece < sums_.size(0); ++piece) {
      for (std::int64_t i = 0; i < 2 * width_; ++i) first(0)[i] += first(piece)[i];
    }
  }

 private:
  std::int64_t width_;
  at::Tensor sums_;
};

/// Values by channel, one row for each.
using Row = std::vector<float>;

/// What the forward pass found.
struct Found {
  std::int64_t rows = 0, width = 0;
  Row mean, rstd, scale, shift;  // y = x * scale + shift
};

template <typename T>
Found statistics(const BatchNormArguments& a) {
  const std::int64_t width = a.x.size(1), rows = a.x.numel() / width;
  const auto size = static_cast<std::size_t>(width);
  Found found{rows, width, Row(size), Row(size), Row(size), Row(size)};
  if (MetaPass::is_on()) return found;
  const at::Tensor pivot_C =
      (a.x.dim() == 4 ? a.x.select(0, 0).select(1, 0).select(1, 0) : a.x.select(0, 0)).to(at::kFloat);
  const float* pivot = pivot_C.const_data_ptr<float>();
  const PairSums sums(width);
  parallel_for_rows(rows, [&](std::int64_t piece, std::int64_t begin, std::int64_t end) {
    kernels::images<T>().channel_sums(
        {data<T>(a.x) + begin * width, pivot, sums.first(piece), sums.second(piece), end - begin, width});
  });
  sums.add_up();
  const float* weight = data<float>(a.weight_C);
  const float* bias = data<float>(a.bias_C);
  float* running_mean = data<float>(a.running_mean_C);
  float* running_var = data<float>(a.running_var_C);
  const auto n = static_cast<double>(rows);
  for (std::size_t c = 0; c < size; ++c) {
    const double from_pivot = sums.first(0)[c] / n;
    const double mean = pivot[c] + from_pivot;
    const double variance = std::max(sums.second(0)[c] / n - from_pivot * from_pivot, 0.0);
    const double rstd = 1.0 / std::sqrt(variance + a.eps);
    const double scale = weight != nullptr ? weight[c] * rstd : rstd;
    found.mean[c] = static_cast<float>(mean);
    found.rstd[c] = static_cast<float>(rstd);
    found.scale[c] = static_cast<float>(scale);
    found.shift[c] = static_cast<float>((bias != nullptr ? bias[c] : 0.0) - mean * scale);
    if (running_mean == nullptr) continue;
    const double unbiased = variance * n / (n - 1.0);
    running_mean[c] = static_cast<float>((1.0 - a.momentum) * running_mean[c] + a.momentum * mean);
    running_var[c] = static_cast<float>((1.0 - a.momentum) * running_var[c] + a.momentum * unbiased);
  }
  return found;
}

template <typename T>
at::Tensor apply_forward(const BatchNormArguments& a, const Found& found) {
  at::Tensor y = at::empty_like(a.x);
  const T* addend = a.addend != nullptr ? data<T>(*a.addend) : nullptr;
  parallel_for_rows(found.rows, [&](std::int64_t, std::int64_t begin, std::int64_t end) {
    const std::int64_t at = begin * found.width;
    kernels::images<T>().scale_shift({data<T>(a.x) + at, found.scale.data(), found.shift.data(),
                                      addend != nullptr ? addend + at : nullptr, a.relu, data<T>(y) + at, end - begin,
                                      found.width});
  });
  return y;
}

/// Its inputs are x, weight, bias and addend, in this order.
class FusedBatchNormBackward final : public torch::autograd::Node {
 public:
  FusedBatchNormBackward(const BatchNormArguments& a, Found found)
      : x_(a.x, false),
        found_(std::move(found)),
        affine_(a.weight_C.defined()),
        added_(a.addend != nullptr),
        relu_(a.relu) {}

  /// Where nothing is added, scale and shift say where the ReLU cut.
  void save_output(const at::Tensor& y) {
    if (relu_ && added_) y_ = SavedVariable(y, true);
  }

  variable_list apply(variable_list&& gradients) override {
    RUNNER_ASSERT(!at::GradMode::is_enabled(), "nothing here asks for gradients of gradients");
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    if (!gradients[0].defined()) return variable_list(4);
    const at::Tensor x = x_.unpack();
    const at::Tensor dy = gradients[0]
                              .to(x.scalar_type())
                              .contiguous(x.dim() == 4 ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous);
    return x.scalar_type() == at::kFloat ? backward<float>(x, dy) : backward<Bf16>(x, dy);
  }

  std::string name() const override { return "FusedBatchNormBackward"; }

  void release_variables() override {
    x_.reset_data();
    y_.reset_data();
  }

 private:
  template <typename T>
  variable_list backward(const at::Tensor& x, at::Tensor dy) {
    const std::int64_t rows = found_.rows, width = found_.width;
    const at::Tensor y = relu_ && added_ ? y_.unpack(shared_from_this()) : at::Tensor();
    const at::Tensor g = y.defined() ? at::empty_like(x) : at::Tensor();
    const bool cuts = relu_ && !added_;
    const float* scale = cuts ? found_.scale.data() : nullptr;
    const float* shift = cuts ? found_.shift.data() : nullptr;
    const PairSums sums(width);
    parallel_for_rows(rows, [&](std::int64_t piece, std::int64_t begin, std::int64_t end) {
      const std::int64_t at = begin * width;
      kernels::images<T>().scale_shift_sums({data<T>(x) + at, data<T>(dy) + at, y.defined() ? data<T>(y) + at : nullptr,
                                             scale, shift, found_.mean.data(), g.defined() ? data<T>(g) + at : nullptr,
                                             sums.first(piece), sums.second(piece), end - begin, width});
    });
    sums.add_up();
    if (g.defined()) dy = g;
    variable_list of_inputs(4);
    if (affine_) of_parameters(sums, of_inputs);
    if (added_ && task_should_compute_output(3)) of_inputs[3] = dy;
    if (task_should_compute_output(0)) of_inputs[0] = of_input<T>(x, dy, scale, shift, sums);
    return of_inputs;
  }

  void of_parameters(const PairSums& sums, variable_list& of_inputs) const {
    const at::Tensor dweight_C = kernels::new_tensor<float>({found_.width});
    const at::Tensor dbias_C = kernels::new_tensor<float>({found_.width});
    of_inputs[1] = dweight_C;
    of_inputs[2] = dbias_C;
    if (MetaPass::is_on()) return;
    for (std::size_t c = 0; c < found_.rstd.size(); ++c) {
      data<float>(dweight_C)[c] = static_cast<float>(sums.second(0)[c] * found_.rstd[c]);
      data<float>(dbias_C)[c] = static_cast<float>(sums.first(0)[c]);
    }
  }

  /// dx = scale * (g - mean(g) - (x - mean) * rstd^2 * mean(g * (x - mean))), as one product of each of g and x.
  template <typename T>
  at::Tensor of_input(const at::Tensor& x, const at::Tensor& g, const float* scale, const float* shift,
                      const PairSums& sums) const {
    const auto size = static_cast<std::size_t>(found_.width);
    const auto n = static_cast<double>(found_.rows);
    Row of_x(size), constant(size);
    for (std::size_t c = 0; c < size; ++c) {
      const double rstd = found_.rstd[c], slope = -found_.scale[c] * rstd * rstd * sums.second(0)[c] / n;
      of_x[c] = static_cast<float>(slope);
      constant[c] = static_cast<float>(-found_.scale[c] * sums.first(0)[c] / n - slope * found_.mean[c]);
    }
    const at::Tensor dx = at::empty_like(x);
    parallel_for_rows(found_.rows, [&](std::int64_t, std::int64_t begin, std::int64_t end) {
      const std::int64_t at = begin * found_.width;
      kernels::images<T>().batch_norm_backward({data<T>(x) + at, data<T>(g) + at, scale, shift, found_.scale.data(),
                                                of_x.data(), constant.data(), data<T>(dx) + at, end - begin,
                                                found_.width});
    });
    return dx;
  }

  SavedVariable x_, y_;
  Found found_;
  bool affine_, added_, relu_;
};

}  // namespace

bool can_fuse(const BatchNormArguments& a) {
  const auto type = a.x.scalar_type();
  return fused_kernels() && (a.x.is_cpu() || a.x.is_meta()) && (type == at::kFloat || type == at::kBFloat16) &&
         is_dense(a.x) && (a.addend == nullptr || (a.addend->scalar_type() == type && is_dense(*a.addend)));
}

at::Tensor fused_batch_norm(const BatchNormArguments& a) {
  const at::Tensor addend = a.addend != nullptr ? *a.addend : at::Tensor();
  const bool single = a.x.scalar_type() == at::kFloat;
  Found found;
  at::Tensor y;
  {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    found = single ? statistics<float>(a) : statistics<Bf16>(a);
    y = single ? apply_forward<float>(a, found) : apply_forward<Bf16>(a, found);
  }
  if (!torch::autograd::compute_requires_grad(a.x, a.weight_C, a.bias_C, addend)) return y;
  const std::shared_ptr<FusedBatchNormBackward> node(new FusedBatchNormBackward(a, std::move(found)),
                                                     torch::autograd::deleteNode);
  node->set_next_edges(torch::autograd::collect_next_edges(a.x, a.weight_C, a.bias_C, addend));
  torch::autograd::set_history(y, node);
  node->save_output(y);
  return y;
}

}  // namespace components::layer

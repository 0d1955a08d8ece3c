// B: samples   C: channels in   O: channels out   H, W: height and width   P: products of a tile

#include "components/layer/winograd_conv2d.h"

#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "components/kernels/images/winograd.h"
#include "components/ops/kernel_policy.h"
#include "components/ops/torch_bridge.h"
#include "components/tensor/tensors.h"
#include "runner/core/error.h"

namespace components::layer {
namespace {

using kernels::Bf16;
using kernels::data;
using kernels::parallel_for_rows;
using kernels::winograd;
using kernels::Winograd;
using torch::autograd::SavedVariable;
using torch::autograd::variable_list;

constexpr std::int64_t kLanes = 16;

/// From this many channels on, sums over tiles exceed the caches: threads then share one set of them.
constexpr std::int64_t kSharedSums = 256;

template <typename T>
bool shares_sums(std::int64_t out) {
  return out >= kSharedSums && out / Winograd<T>::kChannels >= at::get_num_threads();
}

template <typename T>
typename Winograd<T>::Images images_of(const at::Tensor& x) {
  return {x.size(0), x.size(2), x.size(3)};
}

at::Tensor floats(std::int64_t size) { return kernels::new_tensor<float>({size}); }

template <typename T>
at::Tensor transformed_filters(const at::Tensor& weight, bool rotated) {
  const std::int64_t out = weight.size(0), in = weight.size(1);
  at::Tensor transformed = floats(Winograd<T>::filters_workspace(in, out));
  parallel_for_rows((rotated ? in : out) / kLanes, [&](std::int64_t, std::int64_t begin, std::int64_t end) {
    winograd<T>()->transform_filters({data<float>(weight), data<float>(transformed), out, in, rotated, begin, end});
  });
  return transformed;
}

/// [B, out, H, W]
template <typename T>
at::Tensor convolve(const at::Tensor& x, const at::Tensor& filters, std::int64_t out) {
  const std::int64_t in = x.size(1);
  const typename Winograd<T>::Images images = images_of<T>(x);
  at::Tensor y = at::empty({x.size(0), out, x.size(2), x.size(3)}, x.options(), at::MemoryFormat::ChannelsLast);
  const at::Tensor measured = kernels::meta_workspace(images.tiles(), Winograd<T>::convolution_workspace(in, out));
  parallel_for_rows(images.tiles(), [&](std::int64_t, std::int64_t begin, std::int64_t end) {
    const at::Tensor workspace = floats(Winograd<T>::convolution_workspace(in, out));
    winograd<T>()->convolve(
        {data<T>(x), data<float>(filters), data<T>(y), images, in, out, data<float>(workspace), begin, end});
  });
  return y;
}

/// float32, whatever the type of the images.
template <typename T>
at::Tensor filter_gradient(const at::Tensor& x, const at::Tensor& dy) {
  const std::int64_t in = x.size(1), out = dy.size(1), threads = at::get_num_threads();
  const typename Winograd<T>::Images images = images_of<T>(x);
  const std::int64_t of_sums = Winograd<T>::sums_workspace(in, out), groups = out / Winograd<T>::kChannels;
  const bool shared = shares_sums<T>(out);
  const std::int64_t count = shared ? 1 : std::min(threads, images.tiles());
  const at::Tensor sums = floats(count * of_sums);
  const at::Tensor measured =
      kernels::meta_workspace(shared ? groups : images.tiles(), Winograd<T>::gradient_workspace(in, out));
  const auto add = [&](float* to, std::int64_t begin, std::int64_t end, std::int64_t out_begin, std::int64_t out_end) {
    const at::Tensor workspace = floats(Winograd<T>::gradient_workspace(in, out));
    winograd<T>()->sum_gradient(
        {data<T>(x), data<T>(dy), to, images, in, out, data<float>(workspace), begin, end, out_begin, out_end});
  };
  if (shared) {
    parallel_for_rows(groups, [&](std::int64_t, std::int64_t begin, std::int64_t end) {
      add(data<float>(sums), 0, images.tiles(), begin * Winograd<T>::kChannels, end * Winograd<T>::kChannels);
    });
  } else {
    parallel_for_rows(images.tiles(), [&](std::int64_t piece, std::int64_t begin, std::int64_t end) {
      add(data<float>(sums) + piece * of_sums, begin, end, 0, out);
    });
  }
  at::Tensor dweight = kernels::new_tensor<float>({out, in, 3, 3});
  parallel_for_rows(out / kLanes, [&](std::int64_t, std::int64_t begin, std::int64_t end) {
    winograd<T>()->finish_gradient(
        {data<float>(sums), count, data<float>(dweight), in, out, begin * kLanes, end * kLanes});
  });
  return dweight;
}

/// Its inputs are x and weight, in this order.
class WinogradConv2dBackward final : public torch::autograd::Node {
 public:
  WinogradConv2dBackward(const at::Tensor& x, const at::Tensor& weight) : x_(x, false), weight_(weight, false) {}

  variable_list apply(variable_list&& gradients) override {
    RUNNER_ASSERT(!at::GradMode::is_enabled(), "nothing here asks for gradients of gradients");
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    if (!gradients[0].defined()) return variable_list(2);
    const at::Tensor x = x_.unpack();
    const at::Tensor dy = gradients[0].to(x.scalar_type()).contiguous(at::MemoryFormat::ChannelsLast);
    return x.scalar_type() == at::kFloat ? backward<float>(x, dy) : backward<Bf16>(x, dy);
  }

  std::string name() const override { return "WinogradConv2dBackward"; }

  void release_variables() override {
    x_.reset_data();
    weight_.reset_data();
  }

 private:
  template <typename T>
  variable_list backward(const at::Tensor& x, const at::Tensor& dy) {
    variable_list of_inputs(2);
    if (task_should_compute_output(0)) {
      of_inputs[0] = convolve<T>(dy, transformed_filters<T>(weight_.unpack(), true), x.size(1));
    }
    if (task_should_compute_output(1)) of_inputs[1] = filter_gradient<T>(x, dy);
    return of_inputs;
  }

  SavedVariable x_, weight_;
};

}  // namespace

bool can_use_winograd(const at::Tensor& x, const at::Tensor& weight) {
  const bool low = at::autocast::is_autocast_enabled(at::kCPU);
  const bool known = low ? winograd<Bf16>() != nullptr : winograd<float>() != nullptr;
  return fused_kernels() && known && fused_kernels_fit_autocast() &&
         x.scalar_type() == (low ? at::kBFloat16 : at::kFloat) && weight.scalar_type() == at::kFloat &&
         (x.is_cpu() || x.is_meta()) && x.is_contiguous(at::MemoryFormat::ChannelsLast) && weight.is_contiguous() &&
         weight.size(2) == 3 && weight.size(3) == 3 && weight.size(0) % Winograd<float>::kChannels == 0 &&
         weight.size(1) % Winograd<float>::kChannels == 0;
}

at::Tensor winograd_conv2d(const at::Tensor& x, const at::Tensor& weight) {
  at::Tensor y;
  {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    const bool single = x.scalar_type() == at::kFloat;
    y = single ? convolve<float>(x, transformed_filters<float>(weight, false), weight.size(0))
               : convolve<Bf16>(x, transformed_filters<Bf16>(weight, false), weight.size(0));
  }
  if (!torch::autograd::compute_requires_grad(x, weight)) return y;
  const std::shared_ptr<WinogradConv2dBackward> node(new WinogradConv2dBackward(x, weight),
                                                     torch::autograd::deleteNode);
  node->set_next_edges(torch::autograd::collect_next_edges(x, weight));
  torch::autograd::set_history(y, node);
  return y;
}

}  // namespace components::layer

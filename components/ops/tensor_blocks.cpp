#include "components/ops/tensor_blocks.h"

#include <ATen/ops/bucketize.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "components/ops/tensor_steps.h"

namespace components::kernels {
namespace {

at::Tensor dequantized(const at::Tensor& codes, const at::Tensor& absmax, const TensorCodes& table) {
  const at::Tensor scales = absmax.unsqueeze(1).expand({-1, kStateBlock}).reshape({-1}).narrow(0, 0, codes.numel());
  return table.values.index_select(0, codes.to(at::kInt)).mul_(scales);
}

void quantize(const at::Tensor& numbers, const at::Tensor& codes, const at::Tensor& absmax, const TensorCodes& table) {
  const at::Tensor padded = at::zeros({absmax.numel() * kStateBlock}, numbers.options());
  padded.narrow(0, 0, numbers.numel()).copy_(numbers);
  const at::Tensor blocks = padded.view({-1, kStateBlock});
  absmax.copy_(blocks.abs().amax(1));
  constexpr double kSmallest = 1e-38;
  blocks.mul_(absmax.clamp_min(kSmallest).reciprocal_().unsqueeze(1));
  codes.copy_(at::bucketize(padded.narrow(0, 0, numbers.numel()), table.bounds, /*out_int32=*/true));
}

}  // namespace

TensorCodes codes_on(const CodeTable& table, const at::Device& device) {
  const auto on = [&device](const std::array<float, kCodes>& numbers, std::size_t count) {
    const at::Tensor there = at::empty({static_cast<std::int64_t>(count)}, at::kFloat);
    std::copy_n(numbers.begin(), count, there.mutable_data_ptr<float>());
    return there.to(device);
  };
  return {on(table.values, kCodes), on(table.bounds, kCodes - 1)};
}

void adam_8bit(const TensorBlocks& blocks, const AdamStep& step) {
  at::Tensor g = step.common.sign == 1.0F ? blocks.gradient : blocks.gradient * step.common.sign;
  if (step.common.weight_decay != 0.0F) g = g.add(blocks.parameter, step.common.weight_decay);
  const at::Tensor mean = dequantized(blocks.codes[0], blocks.absmax[0], blocks.is_signed);
  const at::Tensor square = dequantized(blocks.codes[1], blocks.absmax[1], blocks.is_unsigned);
  mean.mul_(step.beta1.keep).add_(g, step.beta1.add);
  square.mul_(step.beta2.keep).addcmul_(g, g, step.beta2.add);
  const at::Tensor denominator = square.sqrt().mul_(step.root_scale).add_(step.eps);
  blocks.parameter.mul_(step.common.shrink).addcdiv_(mean, denominator, -step.rate);
  quantize(mean, blocks.codes[0], blocks.absmax[0], blocks.is_signed);
  quantize(square, blocks.codes[1], blocks.absmax[1], blocks.is_unsigned);
}

void lion_8bit(const TensorBlocks& blocks, const LionStep& step) {
  const at::Tensor mean = dequantized(blocks.codes[0], blocks.absmax[0], blocks.is_signed);
  lion(TensorSlice{blocks.parameter, blocks.gradient, {mean}}, step);
  quantize(mean, blocks.codes[0], blocks.absmax[0], blocks.is_signed);
}

}  // namespace components::kernels

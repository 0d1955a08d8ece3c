#include "components/optimizer/eight_bit.h"

#include <ATen/Parallel.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <utility>

#include "components/kernels/optimizer_8bit.h"
#include "components/ops/tensor_blocks.h"
#include "components/tensor/tensors.h"

namespace components::optimizer {
namespace {

/// Below this size bitsandbytes keeps 32 bits, too (min_8bit_size).
constexpr std::int64_t kSmallestElements = 4'096;
static_assert(kStateBlock == kernels::kStateBlock);

/// A piece of work for one thread.
constexpr std::int64_t kSliceElements = 128 * kernels::kStateBlock;

/// A piece that goes through plain operations, and how many tensors of its size they make.
constexpr std::int64_t kTensorElements = std::int64_t{1} << 20U;
constexpr std::int64_t kTensorCopies = 10;

std::vector<std::string> buffers_of(const std::vector<std::string>& moments) {
  std::vector<std::string> names;
  for (const std::string& moment : moments) names.insert(names.end(), {moment, moment + "_absmax"});
  return names;
}

std::int64_t blocks_of(std::int64_t elements) { return (elements + kernels::kStateBlock - 1) / kernels::kStateBlock; }

}  // namespace

struct EightBit::Tables {
  kernels::TensorCodes is_signed, is_unsigned;
};

EightBit::EightBit(const Inputs& inputs, double lr, double weight_decay, const std::vector<std::string>& moments)
    : GroupedOptimizer(inputs.groups, lr, weight_decay, buffers_of(moments)),
      moments_(moments.size()),
      whole_elements_(inputs.whole_elements) {}

EightBit::~EightBit() = default;

std::int64_t EightBit::saved_bytes(std::int64_t elements) const {
  constexpr std::int64_t kFloat = sizeof(float);
  const auto moments = static_cast<std::int64_t>(moments_);
  return moments * (elements < kSmallestElements ? kFloat * elements : elements + kFloat * blocks_of(elements));
}

std::int64_t EightBit::step_bytes(std::int64_t parameter_bytes) const {
  return kTensorCopies * std::min(parameter_bytes, kTensorElements * static_cast<std::int64_t>(sizeof(float)));
}

// A process with some rows of a parameter keeps them as one with all of them would.
at::Tensor EightBit::new_buffer(std::size_t kind, const NamedTensor& parameter) const {
  const auto whole = whole_elements_.find(parameter.name);
  const std::int64_t elements = whole != whole_elements_.end() ? whole->second : parameter.tensor.numel();
  const bool is_small = elements < kSmallestElements, is_absmax = kind % 2 == 1;
  if (is_small) return is_absmax ? at::Tensor() : at::zeros_like(parameter.tensor);
  const auto options = parameter.tensor.options().requires_grad(false);
  if (is_absmax) return at::zeros({blocks_of(parameter.tensor.numel())}, options);
  return at::zeros(parameter.tensor.sizes(), options.dtype(at::kByte));
}

void EightBit::update(const Batch& batch) {
  struct Part {
    std::vector<at::Tensor> parameters, gradients;
    std::vector<std::vector<at::Tensor>> buffers;
  };
  Part small, large;
  small.buffers.resize(moments_);
  large.buffers.resize(2 * moments_);
  for (std::size_t i = 0; i < batch.parameters.size(); ++i) {
    const bool is_small = !batch.buffers[1][i].defined();
    Part& part = is_small ? small : large;
    part.parameters.push_back(batch.parameters[i]);
    part.gradients.push_back(batch.gradients[i]);
    for (std::size_t k = 0; k < part.buffers.size(); ++k)
      part.buffers[k].push_back(batch.buffers[is_small ? 2 * k : k][i]);
  }
  const auto batch_of = [&batch](const Part& part) {
    return Batch{part.parameters, part.gradients,  part.buffers,   batch.step, batch.lr,       batch.weight_decay,
                 batch.group,     batch.lr_factor, batch.momentum, batch.skip, batch.lr_there, batch.step_there};
  };
  if (!small.parameters.empty()) update_small(batch_of(small));
  if (!large.parameters.empty()) update_large(batch_of(large));
}

void EightBit::for_each_slice_of_blocks(const Batch& batch,
                                        const std::function<void(const kernels::BlockSlice&)>& run) const {
  std::vector<kernels::BlockSlice> pieces;
  for (std::size_t i = 0; i < batch.parameters.size(); ++i) {
    const at::Tensor& parameter = batch.parameters[i];
    refuse_other_than_float(parameter);
    refuse_other_than_float(batch.gradients[i]);
    for (std::int64_t begin = 0; begin < parameter.numel(); begin += kSliceElements) {
      kernels::BlockSlice& piece = pieces.emplace_back();
      piece.parameter = parameter.mutable_data_ptr<float>() + begin;
      piece.gradient = batch.gradients[i].const_data_ptr<float>() + begin;
      for (std::size_t k = 0; k < moments_; ++k) {
        piece.codes[k] = batch.buffers[2 * k][i].mutable_data_ptr<std::uint8_t>() + begin;
        piece.absmax[k] = batch.buffers[2 * k + 1][i].mutable_data_ptr<float>() + begin / kernels::kStateBlock;
      }
      piece.size = std::min(kSliceElements, parameter.numel() - begin);
    }
  }
  at::parallel_for(0, static_cast<std::int64_t>(pieces.size()), 1, [&](std::int64_t from, std::int64_t to) {
    for (std::int64_t piece = from; piece < to; ++piece) run(pieces[static_cast<std::size_t>(piece)]);
  });
}

void EightBit::for_each_tensor_of_blocks(const Batch& batch,
                                         const std::function<void(const kernels::TensorBlocks&)>& run) {
  const at::Device device = batch.parameters.front().device();
  if (tables_ == nullptr) {
    tables_ = std::make_unique<Tables>(
        Tables{kernels::codes_on(kernels::kSignedCodes, device), kernels::codes_on(kernels::kUnsignedCodes, device)});
  }
  for (std::size_t i = 0; i < batch.parameters.size(); ++i) {
    refuse_other_than_float(batch.parameters[i]);
    const std::int64_t elements = batch.parameters[i].numel();
    for (std::int64_t begin = 0; begin < elements; begin += kTensorElements) {
      const std::int64_t size = std::min(kTensorElements, elements - begin);
      const auto piece_of = [&](const at::Tensor& whole) { return whole.view({-1}).narrow(0, begin, size); };
      kernels::TensorBlocks piece{
          piece_of(batch.parameters[i]), piece_of(batch.gradients[i]), {}, {}, tables_->is_signed,
          tables_->is_unsigned};
      for (std::size_t k = 0; k < moments_; ++k) {
        piece.codes[k] = piece_of(batch.buffers[2 * k][i]);
        piece.absmax[k] = batch.buffers[2 * k + 1][i].narrow(0, begin / kernels::kStateBlock, blocks_of(size));
      }
      run(piece);
    }
  }
}

}  // namespace components::optimizer

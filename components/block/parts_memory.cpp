#include "components/block/parts_memory.h"

#include <algorithm>

#include "components/block/block.h"
#include "components/tensor/tensors.h"

namespace components::block {

BlockPass BlockPass::over(const Block& block, std::int64_t arriving_bytes) const {
  BlockPass pass = *this;
  pass.input_bytes = pass.weight_bytes = arriving_bytes;
  for (const NamedTensor& parameter : block.parameters()) {
    pass.weight_bytes = static_cast<std::int64_t>(parameter.tensor.element_size());
    if (!autocast) pass.input_bytes = pass.weight_bytes;  // the input is converted
  }
  return pass;
}

void PartsMemory::add(const BlockMemory& part, double output_bytes) {
  const std::size_t input = activations_.size() - 1;
  parts_.push_back(part);
  activations_.push_back({output_bytes, part.output_is_input ? activations_[input].storage : input + 1, false});
  const auto keep = [this](std::size_t i) { activations_[activations_[i].storage].kept = true; };
  if (part.keeps_input) keep(input);
  if (part.keeps_output) keep(input + 1);
}

bool PartsMemory::is_inside(std::size_t i) const {
  const std::size_t storage = activations_[i].storage;
  return storage == i && storage != 0 && storage != activations_.back().storage;
}

double PartsMemory::kept_up_to(std::size_t part) const {
  double bytes = 0;
  for (std::size_t i = 0; i <= part; ++i) bytes += parts_[i].kept;
  for (std::size_t i = 1; i <= part + 1; ++i) bytes += activations_[i].kept ? inside(i) : 0.0;
  return bytes;
}

double PartsMemory::output_after(std::size_t part) const {
  const std::size_t storage = activations_.back().storage;
  return storage > 0 && part + 1 >= storage ? activations_.back().bytes : 0.0;
}

double PartsMemory::forward_peak() const {
  double peak = 0;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const auto passing = [this](std::size_t at) { return activations_[at].kept ? 0.0 : inside(at); };
    peak = std::max(peak, kept_up_to(i) + passing(i) + passing(i + 1) + output_after(i) + parts_[i].forward);
  }
  return peak;
}

double PartsMemory::alone_peak() const {
  double peak = 0;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    peak = std::max(peak, inside(i) + inside(i + 1) + output_after(i) + parts_[i].alone);
  }
  return peak;
}

BlockMemory PartsMemory::whole() const {
  const std::size_t last = parts_.size() - 1;
  BlockMemory memory;
  memory.output_bytes = parts_.back().output_bytes;
  memory.output_is_input = activations_.back().storage == 0;
  memory.keeps_input = activations_.front().kept;
  memory.keeps_output = !memory.output_is_input && activations_[activations_.back().storage].kept;
  memory.kept = kept_up_to(last);
  for (const BlockMemory& part : parts_) {
    memory.products += part.products;
    memory.low_weights += part.low_weights;
    memory.steady_weights += part.steady_weights;
  }
  const double output = output_after(last);
  memory.forward = std::max(0.0, forward_peak() - memory.kept - output);
  memory.alone = std::max(0.0, alone_peak() - output);
  // From the last part to the first: what later parts kept is freed, and the incoming gradient is theirs.
  for (std::size_t i = parts_.size(); i-- > 0;) {
    const double gone = memory.kept - kept_up_to(i);
    const double arriving = i == last ? 0.0 : activations_[i + 1].bytes, leaving = i == 0 ? 0.0 : activations_[i].bytes;
    memory.backward = std::max(memory.backward, arriving + parts_[i].backward - gone);
    if (i > 0) memory.backward = std::max(memory.backward, arriving + leaving + parts_[i].backward_end - gone);
    if (i == 0) memory.backward_end = arriving + parts_[i].backward_end - gone;
  }
  return memory;
}

}  // namespace components::block

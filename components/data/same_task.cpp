#include "components/data/same_task.h"

#include "components/data/block_location.h"
#include "components/data/text_utils.h"
#include "components/tensor/positions.h"
#include "components/tensor/several_texts.h"
#include "runner/core/text/text.h"

namespace components::data {
namespace {

bool same_spec(const TensorSpec& port, const TensorSpec& train, const Inputs& inputs) {
  if (port.dtype == train.dtype && port.shape == train.shape) return true;
  inputs.diagnostics.error(
      inputs.block.location(),
      port.name + " of data." + inputs.name + " is " + to_text(port) + ", and of data.train " + to_text(train),
      "one model is trained on data.train and evaluated on data." + inputs.name + ": give both the same shape");
  return false;
}

/// Of the longest sequence: a row of a pair holds two.
std::int64_t sequence_length(const BatchSpec& signature) {
  const TensorSpec* positions = signature.find(kPositions);
  return positions != nullptr ? positions->max_length : signature.max_length();
}

}  // namespace

bool fits_training_set(const BatchSpec& signature, const Inputs& inputs) {
  if (inputs.train == nullptr) return true;
  const BatchSpec& train = inputs.train->signature();
  bool fits = true;
  for (const TensorSpec& port : signature.tensors) {
    const TensorSpec* of_train = train.find(port.name);
    if (inputs.new_rows && port.name == kTextsAt) continue;  // each text is by itself
    if (of_train != nullptr) fits = same_spec(port, *of_train, inputs) && fits;
  }
  const auto classes = [](const BatchSpec& data) {
    const TensorSpec* target = data.find(kTarget);
    return target != nullptr ? target->num_classes : 0;
  };
  if (fits && classes(signature) != classes(train)) {
    inputs.diagnostics.error(inputs.block.location(), "data." + inputs.name + " has " +
                                                          counted_large(classes(signature), "class", "classes") +
                                                          ", and data.train has " + with_commas(classes(train)));
    fits = false;
  }
  if (fits && sequence_length(signature) > sequence_length(train)) {
    const std::string length = std::to_string(sequence_length(train));
    inputs.diagnostics.error(location_of(inputs.block, "max_seq_len"),
                             "max_seq_len of data." + inputs.name + " is " +
                                 std::to_string(sequence_length(signature)) + ", but the model is made for the " +
                                 length + " of data.train",
                             "use max_seq_len: " + length + " or less");
    fits = false;
  }
  return fits;
}

}  // namespace components::data

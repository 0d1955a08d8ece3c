#include "components/data/same_task.h"

#include "components/data/block_location.h"
#include "components/data/text_utils.h"
#include "runner/core/text/text.h"

namespace components::data {
namespace {

bool same_spec(const TensorSpec& port, const TensorSpec& train, const char* what, const Inputs& inputs) {
  if (port == train) return true;
  inputs.diagnostics.error(
      inputs.block.location(),
      std::string(what) + " of data." + inputs.name + " is " + to_text(port) + ", and of data.train " + to_text(train),
      "one model is trained on data.train and evaluated on data." + inputs.name + ": give both the same shape");
  return false;
}

}  // namespace

bool fits_training_set(const DataSignature& signature, const Inputs& inputs) {
  if (inputs.train == nullptr) return true;
  const DataSignature& train = inputs.train->signature();
  bool fits = same_spec(signature.input, train.input, "input", inputs);
  fits = same_spec(signature.target, train.target, "target", inputs) && fits;
  if (fits && signature.num_classes != train.num_classes) {
    inputs.diagnostics.error(inputs.block.location(), "data." + inputs.name + " has " +
                                                          counted_large(signature.num_classes, "class", "classes") +
                                                          ", and data.train has " + with_commas(train.num_classes));
    fits = false;
  }
  if (fits && signature.max_seq_len > train.max_seq_len) {
    const std::string length = std::to_string(train.max_seq_len);
    inputs.diagnostics.error(location_of(inputs.block, "max_seq_len"),
                             "max_seq_len of data." + inputs.name + " is " + std::to_string(signature.max_seq_len) +
                                 ", but the model is made for the " + length + " of data.train",
                             "use max_seq_len: " + length + " or less");
    fits = false;
  }
  return fits;
}

}  // namespace components::data

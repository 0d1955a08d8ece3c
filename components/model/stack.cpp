// B: samples   T: positions   C: features of the stream

#include "components/model/stack.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "components/model/embed.h"
#include "components/model/heads.h"
#include "components/model/layer.h"
#include "components/tensor/positions.h"

namespace components::model {
namespace {

constexpr const char* kStream = "x";  // the residual stream between blocks

/// The location of the key if it was written, else of the block.
const runner::core::Location& location_of(const runner::core::Node& block, const char* key) {
  const runner::core::Node* node = block.find(key);
  return node != nullptr && !node->is_null() ? node->location() : block.location();
}

/// A size from the recipe, or else from the data; an error if the data need more than the recipe sets, or have none.
std::int64_t settle_size(const char* model, const char* key, std::optional<std::int64_t> written, std::int64_t of_data,
                         const std::string& what_data_has, const std::string& hint, const Inputs& inputs) {
  if (!written && of_data <= 0) {
    inputs.diagnostics.error(inputs.block.location(), std::string(model) + " cannot derive " + key + " from this data",
                             std::string("set ") + key);
    return 0;
  }
  if (written && *written < of_data) {
    inputs.diagnostics.error(location_of(inputs.block, key),
                             std::string(key) + " is " + std::to_string(*written) + ", but the data " + what_data_has,
                             hint);
    return 0;
  }
  return written.value_or(of_data);
}

/// False, and an error, when a document would not be in a row what it is alone.
bool fits_packing(const part::Rotation* rotation, const Inputs& inputs) {
  const std::int64_t length = inputs.data.max_length();
  if (rotation == nullptr || !rotation->depends_on_length(length)) return true;
  inputs.diagnostics.error(
      inputs.block.location(),
      "the model's rotary positions go by the length of a row (dynamic scaling or longrope), and rows of " +
          std::to_string(length) + " ids with several texts are longer than it was trained on",
      "set a smaller max_seq_len, or remove packing where it is set");
  return false;
}

}  // namespace

std::optional<DecoderSizes> settle_decoder_sizes(const char* model, std::optional<std::int64_t> vocab_size,
                                                 const char* positions_key, std::optional<std::int64_t> positions,
                                                 const Inputs& inputs) {
  const TensorSpec& input = inputs.data.at(kInput);
  if (input.dtype != Dtype::kInt64 || input.shape.size() != 2) {
    inputs.diagnostics.error(inputs.block.location(),
                             std::string(model) + " reads ids, int64 [batch, time], but the data is " + to_text(input),
                             "use data of text, or a model for features such as mlp");
    return std::nullopt;
  }
  const std::string ids = std::to_string(input.vocab_size), length = std::to_string(inputs.data.longest_sequence());
  const std::string key = positions_key;
  DecoderSizes sizes{0, 0, runner::core::Node::mapping()};
  sizes.vocab_size = settle_size(model, "vocab_size", vocab_size, input.vocab_size, "has " + ids + " distinct ids",
                                 "set vocab_size to " + ids + " or leave it out", inputs);
  sizes.positions = settle_size(model, positions_key, positions, inputs.data.longest_sequence(),
                                "has sequences of max_seq_len " + length,
                                "set " + key + " to " + length + " or leave it out", inputs);
  if (sizes.vocab_size == 0 || sizes.positions == 0) return std::nullopt;
  if (!vocab_size) sizes.of_data.set("vocab_size", runner::core::Node::integer(sizes.vocab_size));
  if (!positions) sizes.of_data.set(key, runner::core::Node::integer(sizes.positions));
  return sizes;
}

std::shared_ptr<Model> make_stack(const StackOptions& options, const Inputs& inputs) {
  const TensorSpec ids{kInput, Dtype::kInt64, {kBatch, kTime}, false};
  const TensorSpec stream{kStream, Dtype::kFloat32, {kBatch, kTime, options.width}};
  const auto rotation_of = [&](const std::optional<part::RotaryOptions>& rotary) {
    return rotary ? std::make_shared<const part::Rotation>(*rotary, options.positions, inputs.weights.meta()) : nullptr;
  };
  const std::shared_ptr<const part::Rotation> rotation = rotation_of(options.rotary);
  const std::shared_ptr<const part::Rotation> local = rotation_of(options.local_rotary);
  // Where no position looks at later ones, padding at the end changes nothing.
  const TensorSpec* mask = inputs.data.find(kAttentionMask);
  if (mask != nullptr && options.attention.causal && !mask->scattered) mask = nullptr;
  const TensorSpec* const padding = options.experts.balance ? inputs.data.find(kAttentionMask) : nullptr;
  const LayerReads reads{mask, inputs.data.find(kPositions), padding};
  if (reads.positions != nullptr && !(fits_packing(rotation.get(), inputs) && fits_packing(local.get(), inputs))) {
    return nullptr;
  }
  std::vector<std::unique_ptr<block::Block>> blocks;
  const bool leaves_out = leaves_out_padding(options, reads);
  auto embed = std::make_unique<Embed>(ids, stream, options, inputs.data, leaves_out ? mask : nullptr, inputs.weights);
  const Embed& tokens = *embed;
  blocks.push_back(std::move(embed));
  for (std::int64_t i = 0; i < options.layers; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const bool is_local = local != nullptr && !options.windows.empty() && options.windows[at] > 0;
    const bool turns = options.rotated.empty() || options.rotated[at];
    blocks.push_back(make_layer("h." + std::to_string(i), i, stream, options,
                                !turns     ? nullptr
                                : is_local ? local
                                           : rotation,
                                reads, inputs.weights));
  }
  blocks.push_back(make_head(stream, inputs.data, options, tokens.token_weight(), inputs.weights));
  auto model = std::make_shared<Model>(std::move(blocks));
  model->set_positions(options.positions);
  return model;
}

}  // namespace components::model

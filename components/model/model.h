#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "components/block/block.h"
#include "components/part/weight.h"
#include "components/tensor/tensor_spec.h"
#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "runner/core/tensor_fwd.h"

namespace components {
struct NamedTensor;
class TensorMap;
}  // namespace components

namespace components::part {
struct CachedPass;
class KvCache;
}  // namespace components::part

namespace components::model {
class Placement;
struct RecomputedPart;

/// Hooks around every block, run in the order they were added (before_*) and in reverse (after_*).
struct BlockHooks {
  std::function<void(const block::Block&, TensorMap&)> before_forward;
  std::function<void(const block::Block&, TensorMap&)> after_forward;
};

/// Consecutive blocks with activations that are recomputed in the backward pass, from the input of the first block.
struct RecomputedBlocks {
  std::size_t first = 0, count = 0;
  bool save_matmuls = false;  ///< save the outputs of matrix products, convolutions and fused attention
};

/// An ordered list of named blocks. `forward` needs inputs() in the map and leaves outputs() there, kOutput among them
/// unless loss, metrics and callbacks read others.
class Model {
 public:
  explicit Model(std::vector<std::unique_ptr<block::Block>> blocks);
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  const std::vector<std::unique_ptr<block::Block>>& blocks() const { return blocks_; }
  /// What its blocks read and none before them writes: tensors of the batch. Each once, in order.
  std::vector<TensorSpec> inputs() const;
  /// What its blocks write and none after them reads or replaces, in order.
  std::vector<TensorSpec> outputs() const;
  void forward(TensorMap& activations) const;
  /// One of the blocks, with the hooks around it.
  void forward_block(const block::Block& block, TensorMap& activations) const;
  /// Block::forward(), decode() and keep_source() of one of them, where it is placed; without hooks.
  void encode_block(const block::Block& block, TensorMap& activations) const;
  void decode_block(const block::Block& block, TensorMap& activations, part::CachedPass& pass) const;
  void keep_source(const block::Block& block, TensorMap& activations, part::KvCache& cache, std::int64_t slot) const;
  /// The same for the loss alone: leaves `kOutput`, or `kHidden` [..., C] and `kProjection` [V, C] in its place.
  void forward_for_loss(TensorMap& activations) const;
  /// Whether it gives, for each position of a text, logits of the vocabulary that follow from those up to it; of a
  /// model with an encoder, from the source, too.
  bool continues_text() const;
  /// Of a model with an encoder: the id that begins what its decoder writes of a source. Nothing: it has none.
  const std::optional<std::int32_t>& decoder_start() const { return decoder_start_; }
  void set_decoder_start(std::int32_t id) { decoder_start_ = id; }
  /// Ids of the longest text that it reads; 0: it reads no text, or its positions are relative and have no end.
  std::int64_t positions() const { return positions_; }
  void set_positions(std::int64_t longest) { positions_ = longest; }
  /// Keys of its block in the recipe that are not written and followed from the data, with their values; a mapping.
  const runner::core::Node& sizes_of_data() const { return sizes_of_data_; }
  void set_sizes_of_data(runner::core::Node sizes) { sizes_of_data_ = std::move(sizes); }
  bool gives_hidden() const { return blocks_.back()->gives_hidden(); }
  void add_hooks(BlockHooks hooks) { hooks_.push_back(std::move(hooks)); }
  /// The model's activation checkpointing: changes what is kept, never the results. Hooks run again with their block.
  /// In order, without overlap, and without the last block, whose backward pass comes first anyway.
  void set_recomputed(const std::vector<RecomputedBlocks>& blocks);
  std::vector<RecomputedBlocks> recomputed() const;
  /// Null, as at first: the weights of all blocks are where they compute, on one device.
  void set_placement(std::shared_ptr<Placement> placement) { placement_ = std::move(placement); }
  Placement* placement() const { return placement_.get(); }

  /// Calls `visit` for each block, in order, while its weights are where it computes.
  void visit_weights(const std::function<void(const block::Block&)>& visit) const;
  std::vector<NamedTensor> parameters() const;
  std::vector<NamedTensor> trained_parameters() const;  ///< those that are not frozen
  std::vector<NamedTensor> buffers() const;
  std::vector<NamedTensor> constants() const;  ///< Block::constants
  std::vector<block::Tie> ties() const;
  void set_training(bool training);
  bool is_training() const { return is_training_; }
  void set_running_stats_momentum(std::optional<double> momentum);
  void decay_running_stats(std::int64_t batches);
  double forward_flops(std::int64_t positions) const;
  /// The same of a forward and a backward pass: three times as much, less what no trained parameter asks for.
  double training_flops(std::int64_t positions) const;
  std::int64_t parameter_count() const;  ///< tied ones once

 private:
  struct Recomputed {
    RecomputedBlocks blocks;
    std::shared_ptr<const RecomputedPart> part;
  };

  template <typename Step>
  void placed(const block::Block& block, TensorMap& activations, const Step& step) const;
  template <typename Step>
  void with_hooks(const block::Block& block, TensorMap& activations, const Step& step) const;
  void forward_all_but_last(TensorMap& activations) const;
  std::shared_ptr<const RecomputedPart> make_recomputed(const RecomputedBlocks& blocks) const;

  std::vector<std::unique_ptr<block::Block>> blocks_;
  std::vector<BlockHooks> hooks_;
  std::vector<Recomputed> recomputed_;
  std::shared_ptr<Placement> placement_;
  bool is_training_ = true;
  std::optional<std::int32_t> decoder_start_;
  std::int64_t positions_ = 0;
  runner::core::Node sizes_of_data_ = runner::core::Node::mapping();
};

/// Arguments to make a model. A block reads what `data` always holds and, where `data.find()` has it, an optional
/// tensor such as kAttentionMask, and names both in its inputs(). The weights come from `weights`: `plan` builds every
/// model on the meta device first, where nothing is allocated.
struct Inputs {
  const BatchSpec& data;
  part::WeightMaker& weights;
  const runner::core::Node& block;         ///< the model's block in the recipe, for locations in messages
  runner::core::Diagnostics& diagnostics;  ///< shapes that do not fit, a vocabulary that is too small
};

/// Adds noise to the vectors of ids in each pass of a training: uniform in ± alpha / sqrt(T C) for T positions of width
/// C, as long as the batch's rows are. Evaluations have none. False for a model that reads no ids.
///
/// Source  Jain et al. 2023, NEFTune: Noisy Embeddings Improve Instruction Finetuning
bool add_embedding_noise(Model& model, double alpha);

/// Freezes what `training.freeze` names and, with `training.train_only`, what that does not name: such a parameter gets
/// no gradient. A pattern may name a parameter as the model does, by the name of a tie, or as Transformers does for the
/// model type of `block`; there a pattern or several have to name all that is joined in one parameter.
///
/// training   that section of the recipe; with neither key nothing changes
/// block      the recipe's model
/// Errors     at the pattern: it names no parameter, or a part of one; or nothing is left to train
void freeze_parameters(const Model& model, const runner::core::Node& training, const runner::core::Node& block,
                       runner::core::Diagnostics& diagnostics);

/// The parameters that the patterns of a key name, in the same way.
///
/// key        its path, for messages: `parallelism.replicate`
/// patterns   its value, a sequence of strings
/// block      the recipe's model
/// Errors     at the pattern: it names no parameter, or a part of one
std::set<std::string> named_parameters(const Model& model, const std::string& key, const runner::core::Node& patterns,
                                       const runner::core::Node& block, runner::core::Diagnostics& diagnostics);

/// What a parameter or buffer is made of, each by all of its names: the one here, and in Transformers with the prefix
/// of the base model and without.
///
/// block  the recipe's model
std::vector<std::vector<std::string>> names_of_parts(const runner::core::Node& block, const std::string& tensor);

/// Null when `diagnostics` got an error.
/// Defined by the generated table: reads `type:`, parses the Config and calls that component's make().
std::shared_ptr<Model> build(const runner::core::Node& block, const Inputs& inputs);

}  // namespace components::model

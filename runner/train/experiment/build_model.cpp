#include "runner/train/experiment/build_model.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "components/block/quantized.h"
#include "components/part/linear.h"
#include "components/part/quantized_product.h"
#include "components/tensor/device.h"
#include "components/tensor/positions.h"
#include "components/tensor/tensors.h"
#include "generated/section/init_from.h"
#include "generated/section/parallelism.h"
#include "generated/section/training.h"
#include "runner/core/log.h"
#include "runner/core/platform/machine.h"
#include "runner/core/units.h"
#include "runner/train/experiment/activation_checkpointing.h"
#include "runner/train/experiment/build/quantized_forms.h"
#include "runner/train/experiment/precision.h"
#include "runner/train/experiment/tensor_names.h"
#include "runner/train/experiment/training_device.h"
#include "runner/train/placement/block_places.h"
#include "runner/train/placement/travelling_weights.h"

namespace runner::train {
namespace {

using core::Diagnostics;
using core::Node;

using resolve::Recipe;
using Forms = components::part::QuantizedWeights::Forms;

/// False where the optimizer frees each gradient as it arrives. `model` may be on the meta device.
bool holds_gradients(const components::model::Model& model, const Node& optimizer) {
  Diagnostics told_later;
  auto groups = components::optimizer::make_param_groups(optimizer, model.trained_parameters(), told_later);
  return !components::optimizer::build(optimizer, {std::move(groups)})->steps_in_backward();
}

// Without this check the machine would evict its caches for minutes and then kill the process silently. Checks the
// minimum only. `plan`, which may be meant for another machine, compares the whole estimate itself.
bool fits_memory(const components::model::Model& model, const std::set<std::string>& in_bf16,
                 const Experiment& experiment, bool with_gradients, const BuildOptions& options,
                 Diagnostics& diagnostics) {
  if (options.meta) return true;
  const Recipe& recipe = experiment.recipe;
  const std::set<std::string>& replicated = experiment.replicated;
  const double processes = options.kept_rows ? options.kept_rows->processes : 1;
  double needed = 0;
  for (const auto& parameter : model.parameters()) {
    const double copies = with_gradients && parameter.tensor.requires_grad() ? 2 : 1;
    const double element_bytes = in_bf16.contains(parameter.name) ? 2 : 4;
    const double bytes = copies * static_cast<double>(parameter.tensor.numel()) * element_bytes;
    needed += replicated.contains(parameter.name) ? bytes : bytes / processes;
  }
  needed += static_cast<double>(components::block::quantized_bytes(model.blocks()));
  if (experiment.places != nullptr) {
    needed += static_cast<double>(experiment.places->room_bytes - experiment.places->travelling_bytes);
  }
  const auto limit = static_cast<double>(core::memory_limit());
  const auto& allowed = recipe.training->max_memory;
  if (options.for_training && allowed && needed > static_cast<double>(*allowed)) {
    const Node& max_memory = recipe.at("training.max_memory");
    diagnostics.error(max_memory.location(),
                      "max_memory is " + max_memory.scalar_text() + ", but the model's weights " +
                          (with_gradients ? "and their gradients " : "") + "alone take " +
                          core::format_bytes(static_cast<std::int64_t>(needed)),
                      "make the model smaller, or raise max_memory");
    return false;
  }
  if (needed <= limit) return true;
  const std::string what = std::string("the model's weights") + (with_gradients ? " and their gradients" : "") +
                           " alone take " + core::format_bytes(static_cast<std::int64_t>(needed)) + ", and there are " +
                           core::format_bytes(static_cast<std::int64_t>(limit)) + " of memory";
  diagnostics.error(recipe.model.location(), what, "make the model smaller, or run on a machine with more memory");
  return false;
}

/// With `init_from.resize_vocab` the model of a configuration has at least the rows that the data need.
void settle_vocabulary(Recipe& recipe, const components::BatchSpec& data) {
  const Node *config = recipe.model.find("config"), *written = recipe.model.find("vocab_size");
  const Node* rows = config != nullptr && config->is_mapping() ? config->find("vocab_size") : nullptr;
  const components::TensorSpec* ids = data.find(components::kInput);
  if (!recipe.init_from->resize_vocab || rows == nullptr || written == nullptr || !written->is_null()) return;
  if (ids == nullptr || ids->vocab_size <= rows->as_integer()) return;
  Node settled = Node::integer(ids->vocab_size, recipe.model.location());
  settled.add_history({"settled from the ids of the data, for init_from.resize_vocab", core::Origin::kSettled});
  recipe.model.set("vocab_size", std::move(settled));
  recipe.root.set("model", recipe.model);
}

/// Adds the recipe's adapters to the model, before it is known what is trained.
void add_adapters(Experiment& experiment, const components::model::Model& model, components::part::WeightMaker& weights,
                  Diagnostics& diagnostics) {
  experiment.adapters.clear();
  for (const Node& block : experiment.recipe.adapters) {
    auto adapter = components::adapter::build(block, {model, experiment.recipe.model, weights, block, diagnostics});
    if (adapter != nullptr) experiment.adapters.push_back(std::move(adapter));
  }
}

const at::Tensor& let_memory_go(const at::Tensor& tensor) {
  tensor.storage().set_data_ptr_noswap(c10::DataPtr(nullptr, tensor.device()));
  tensor.storage().set_nbytes(0);
  return tensor;
}

/// Weights without memory where their block's are elsewhere: another maker gives them their numbers first, so that
/// those of the others are the same as without `placement`.
class TravellingMaker final : public components::part::WeightMaker {
 public:
  /// `places` may be null. Both outlive this.
  TravellingMaker(components::part::WeightMaker& others, const BlockPlaces* places)
      : others_(others), places_(places) {}

  at::Tensor make(const std::string& name, std::span<const std::int64_t> shape,
                  const components::part::Init& init) override {
    at::Tensor made = others_.make(name, shape, init);
    if (places_ == nullptr || !places_->travelling.contains(name)) return made;
    return let_memory_go(made);
  }
  at::Tensor make_buffer(const std::string& name, std::span<const std::int64_t> shape,
                         const components::part::Init& init) override {
    return others_.make_buffer(name, shape, init);
  }

 private:
  components::part::WeightMaker& others_;
  const BlockPlaces* places_;
};

/// Where the blocks are. What travels and is only multiplied in bfloat16 is kept so: a copy beside it would stay.
bool place_blocks(Experiment& experiment, const components::model::Model& on_meta, std::set<std::string>& in_bf16,
                  const BuildOptions& options, Diagnostics& diagnostics) {
  const Recipe& recipe = experiment.recipe;
  auto places =
      block_places({recipe, on_meta, in_bf16, device_of(recipe), options.for_training, options.meta}, diagnostics);
  if (!places) return false;
  const auto lowered = lowered_weights(on_meta, autocast_of_blocks(recipe, on_meta), places->main);
  for (const auto& [name, type] : lowered) {
    if (type == at::kBFloat16 && places->travelling.contains(name)) in_bf16.insert(name);
  }
  if (!options.meta) {
    experiment.device = places->main;
    core::log_info("placement: " + places->text());
  }
  experiment.places = std::make_shared<const BlockPlaces>(std::move(*places));
  return true;
}

/// Each tensor to where its block computes; what travels has no memory there.
void move_blocks(const Experiment& experiment) {
  const auto& blocks = experiment.model->blocks();
  const BlockPlaces* const places = experiment.places.get();
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const c10::Device device = places != nullptr ? places->device_of(i) : experiment.device;
    components::NamedTensors here = blocks[i]->parameters();
    if (places != nullptr && !device.is_cpu()) {
      for (const components::NamedTensor& parameter : here) {
        if (!places->travelling.contains(parameter.name)) continue;
        const at::Tensor there = at::empty(parameter.tensor.sizes(), parameter.tensor.options().device(device));
        parameter.tensor.set_data(let_memory_go(there));
      }
    }
    components::move_to(here, device);
    components::move_to(blocks[i]->buffers(), device);
    components::move_to(blocks[i]->constants(), device);
    for (const components::part::NamedProduct& named : blocks[i]->quantized()) named.product->move_to(device);
  }
}

/// For a model whose recipe says all of its sizes.
components::BatchSpec ids_of_any_text() {
  return {{{components::kInput, components::Dtype::kInt64, {components::kBatch, components::kTime}, false}}};
}

}  // namespace

void build_model(Experiment& experiment, const BuildOptions& options, Diagnostics& diagnostics) {
  const components::BatchSpec signature = options.of_ids ? ids_of_any_text() : joint_signature(experiment);
  settle_vocabulary(experiment.recipe, signature);
  const Recipe& recipe = experiment.recipe;
  const Node& block = recipe.model;
  components::part::MetaWeights shapes;
  Diagnostics told_before;
  // The weights of adapters are drawn where those of the model follow from a file, which may hold no adapters.
  const auto make = [&](components::part::WeightMaker& weights, components::part::WeightMaker& of_adapters,
                        Diagnostics& told) {
    auto model = components::model::build(block, {signature, weights, block, told});
    if (model != nullptr) add_adapters(experiment, *model, of_adapters, told);
    return model;
  };
  auto on_meta = make(shapes, shapes, diagnostics);
  if (on_meta == nullptr || experiment.adapters.size() != recipe.adapters.size()) return;
  components::model::freeze_parameters(*on_meta, recipe.at("training"), block, diagnostics);
  const Forms forms = quantized_forms(recipe, *on_meta, options.for_training, diagnostics);
  if (!forms.empty()) {
    components::part::QuantizedWeights smaller(shapes, forms);
    on_meta = make(smaller, shapes, told_before);
    components::model::freeze_parameters(*on_meta, recipe.at("training"), block, told_before);
  }
  if (options.for_training && recipe.parallelism && recipe.parallelism->shard) {
    constexpr const char* kReplicate = "parallelism.replicate";
    experiment.replicated =
        components::model::named_parameters(*on_meta, kReplicate, recipe.at(kReplicate), block, diagnostics);
  }
  const bool with_gradients = options.for_training && holds_gradients(*on_meta, recipe.optimizer);
  experiment.steps_in_backward = options.for_training && !with_gradients;
  std::set<std::string> in_bf16 = bf16_weights(recipe, *on_meta);
  if (options.check_model && !options.check_model(*on_meta, experiment.replicated)) return;
  if (options.in_bf16) in_bf16.merge(options.in_bf16(*on_meta));
  if (recipe.placement) {
    if (!place_blocks(experiment, *on_meta, in_bf16, options, diagnostics)) return;
  }
  if (!fits_memory(*on_meta, in_bf16, experiment, with_gradients, options, diagnostics)) return;
  if (options.meta) {
    for (const auto& parameter : on_meta->parameters()) {
      if (in_bf16.contains(parameter.name)) parameter.tensor.set_data(parameter.tensor.to(at::kBFloat16));
    }
    experiment.model = std::move(on_meta);
  } else {
    at::manual_seed(static_cast<std::uint64_t>(recipe.seed));
    std::unique_ptr<components::part::WeightMaker> maker;
    if (options.weights_follow) {
      maker = std::make_unique<components::part::UnfilledWeights>(std::move(in_bf16));
    } else {
      maker = std::make_unique<components::part::DrawnWeights>(std::move(in_bf16));
    }
    TravellingMaker travelling(*maker, experiment.places.get());
    components::part::QuantizedWeights smaller(travelling, forms);
    components::part::DrawnWeights of_adapters;
    if (options.kept_rows) {
      const components::part::WeightRows::Rows kept = [&](const std::string& name, const at::Tensor& whole) {
        return experiment.replicated.contains(name) ? at::Tensor() : options.kept_rows->rows(whole);
      };
      components::part::WeightRows rows(smaller, kept), rows_of_adapters(of_adapters, kept);
      experiment.model = make(rows, rows_of_adapters, told_before);
      components::NamedTensors all = rows.take();
      for (components::NamedTensor& one : rows_of_adapters.take()) all.push_back(std::move(one));
      experiment.rows = std::make_shared<const components::NamedTensors>(std::move(all));
    } else {
      experiment.model = make(smaller, of_adapters, told_before);
    }
    components::model::freeze_parameters(*experiment.model, recipe.at("training"), block, told_before);
  }
  apply_precision(recipe, experiment.device.type(), *experiment.model, diagnostics);
  if (const auto alpha = recipe.training->neftune_noise_alpha;
      alpha && !components::model::add_embedding_noise(*experiment.model, *alpha)) {
    diagnostics.error(recipe.at("training").find("neftune_noise_alpha")->location(),
                      "training.neftune_noise_alpha adds noise to the vectors of tokens, and the model reads no ids",
                      "remove it");
  }
  apply_activation_checkpointing(recipe, *experiment.model, diagnostics);
  if (options.meta) return;
  move_blocks(experiment);
  if (experiment.places != nullptr) {
    experiment.placement = std::make_shared<TravellingWeights>(*experiment.model, *experiment.places);
    experiment.model->set_placement(experiment.placement);
  }
}

}  // namespace runner::train

#include "runner/train/experiment/precision.h"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "components/ops/kernel_policy.h"
#include "components/part/linear.h"
#include "components/part/linear_term.h"
#include "components/tensor/tensors.h"
#include "generated/section/precision.h"
#include "runner/core/language/name_map.h"
#include "runner/core/text/suggest.h"
#include "runner/core/text/text.h"
#include "runner/resolve/recipe.h"

namespace runner::train {
namespace {

using components::Autocast;
using components::block::Block;
using components::model::Model;
using sections::precision::Config;
using sections::precision::Mode;
using sections::precision::Overrides;
using Type = components::AutocastOptions::Type;

/// The number formats of one block.
struct BlockFormat {
  bool bf16_weights = false;
  Type autocast = Type::kNone;
};

BlockFormat format_of(const Config& config) {
  switch (config.mode) {
    case Mode::k32True: return {};
    case Mode::kBf16Mixed: return {false, config.autocast.enabled ? Type::kBf16 : Type::kNone};
    case Mode::k16Mixed: return {false, config.autocast.enabled ? Type::kFp16 : Type::kNone};
    case Mode::kBf16True: return {true, Type::kNone};
  }
  return {};
}

BlockFormat format_of(Overrides mode, const Config& config) {
  switch (mode) {
    case Overrides::k32True: return {};
    case Overrides::kBf16Mixed: return {false, config.autocast.enabled ? Type::kBf16 : Type::kNone};
    case Overrides::kBf16True: return {true, Type::kNone};
  }
  return {};
}

using Formats = std::map<const Block*, BlockFormat>;

Formats choose_formats(const resolve::Recipe& recipe, const Model& model, core::Diagnostics& diagnostics) {
  const Config& config = *recipe.precision;
  Formats formats;
  std::vector<std::string> names;
  for (const auto& block : model.blocks()) {
    formats[block.get()] = format_of(config);
    names.push_back(block->name());
  }
  std::vector<bool> decided(names.size());
  for (const auto& [pattern, mode] : config.overrides) {
    bool any = false;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (!core::matches_wildcard(pattern, names[i])) continue;
      any = true;
      if (decided[i]) continue;
      decided[i] = true;
      formats[model.blocks()[i].get()] = format_of(mode, config);
    }
    if (any) continue;
    const std::string near = core::closest(pattern, names);
    diagnostics.error(recipe.at("precision.overrides").find_entry(pattern)->key_location,
                      "the model has no block called \"" + pattern + "\"",
                      near.empty() ? "its blocks are called " + core::joined_first(names, 3) + "; `*` matches any text"
                                   : "did you mean \"" + near + "\"? `*` matches any text");
  }
  return formats;
}

const Block* owner_of(const Model& model, const std::string& parameter) {
  for (const auto& block : model.blocks()) {
    for (const auto& named : block->parameters()) {
      if (named.name == parameter) return block.get();
    }
  }
  return nullptr;
}

void refuse_torn_ties(const resolve::Recipe& recipe, const Formats& formats, const Model& model,
                      core::Diagnostics& diagnostics) {
  for (const auto& block : model.blocks()) {
    for (const auto& tie : block->ties()) {
      const Block* owner = owner_of(model, tie.owner);
      if (owner == nullptr || formats.at(owner).bf16_weights == formats.at(block.get()).bf16_weights) continue;
      const auto format = [&](const Block* b) {
        return b->name() + (formats.at(b).bf16_weights ? " keeps its weights in bfloat16" : " in float32");
      };
      const Block* low = formats.at(owner).bf16_weights ? owner : block.get();
      const Block* high = low == owner ? block.get() : owner;
      diagnostics.error(recipe.location("precision.overrides"),
                        "blocks " + owner->name() + " and " + block->name() + " share " + tie.owner + ", but " +
                            format(low) + " and " + format(high),
                        "give both the same kind of mode, or untie them");
    }
  }
}

void convert_weights(const Formats& formats, const Model& model) {
  const at::NoGradGuard no_grad;
  for (const auto& block : model.blocks()) {
    if (!formats.at(block.get()).bf16_weights) continue;
    for (const auto& parameter : block->parameters()) {
      if (components::part::is_of_term(parameter.name)) continue;  // adapters keep float32
      if (!parameter.tensor.is_floating_point() || parameter.tensor.scalar_type() == at::kBFloat16) continue;
      parameter.tensor.set_data(parameter.tensor.to(at::kBFloat16));
    }
  }
}

/// Under autocast each operation converts its inputs; without it inputs must have the weights' type.
void convert_inputs(const Block& block, const BlockFormat& format, components::TensorMap& activations) {
  if (format.autocast != Type::kNone) return;
  const auto wanted = format.bf16_weights ? at::kBFloat16 : at::kFloat;
  for (const auto& port : block.inputs()) {
    const at::Tensor& x = activations.at(port.name);
    if (x.is_floating_point() && x.scalar_type() != wanted) activations.set(port.name, x.to(wanted));
  }
}

}  // namespace

Precision read_precision(const Config& config) {
  Precision precision;
  precision.autocast.type = format_of(config).autocast;
  precision.autocast.cache = config.autocast.cache_enabled;
  precision.autocast.by_block = !config.overrides.empty();
  const auto& scaler = config.scaler;
  precision.scaler = {config.mode == Mode::k16Mixed && scaler.enabled,
                      scaler.loss_scale.value_or(scaler.init_scale),
                      scaler.growth_factor,
                      scaler.backoff_factor,
                      scaler.growth_interval,
                      scaler.hysteresis,
                      scaler.min_loss_scale.value_or(0.0),
                      !scaler.loss_scale};
  return precision;
}

void apply_precision(const resolve::Recipe& recipe, c10::DeviceType device, Model& model,
                     core::Diagnostics& diagnostics) {
  const Config& config = *recipe.precision;
  if (config.overrides.empty() && config.mode != Mode::kBf16True) return;
  auto formats = std::make_shared<const Formats>(choose_formats(recipe, model, diagnostics));
  refuse_torn_ties(recipe, *formats, model, diagnostics);
  if (diagnostics.has_errors()) return;
  convert_weights(*formats, model);
  const bool switches = !config.overrides.empty();
  components::model::BlockHooks hooks;
  hooks.before_forward = [formats, switches, device](const Block& block, components::TensorMap& activations) {
    const BlockFormat& format = formats->at(&block);
    if (switches) Autocast::set_type(format.autocast, device);
    convert_inputs(block, format, activations);
  };
  // The loss, after the blocks, uses the section's own mode.
  if (switches) {
    hooks.after_forward = [type = format_of(config).autocast, device](const Block&, components::TensorMap&) {
      Autocast::set_type(type, device);
    };
  }
  model.add_hooks(std::move(hooks));
}

std::set<std::string> bf16_weights(const resolve::Recipe& recipe, const Model& model) {
  core::Diagnostics told_later;
  std::set<std::string> names;
  for (const auto& [block, format] : choose_formats(recipe, model, told_later)) {
    if (!format.bf16_weights) continue;
    for (const auto& parameter : block->parameters()) {
      if (!components::part::is_of_term(parameter.name)) names.insert(parameter.name);
    }
  }
  return names;
}

std::vector<Type> autocast_of_blocks(const resolve::Recipe& recipe, const Model& model) {
  core::Diagnostics told_later;
  const Formats formats = choose_formats(recipe, model, told_later);
  std::vector<Type> types;
  for (const auto& block : model.blocks()) types.push_back(formats.at(block.get()).autocast);
  return types;
}

bool multiplies_bf16(c10::Device device) { return !device.is_cpu() || components::has_bf16_units(); }

std::map<std::string, c10::ScalarType> lowered_weights(const Model& model, const std::vector<Type>& autocast,
                                                       c10::Device device) {
  // Those that a block takes in a smaller type: its own ones and those that it shares.
  const auto lowered_of = [&](std::size_t block) {
    std::map<std::string, c10::ScalarType> low;
    const Type type = autocast[block];
    if (type == Type::kNone || (type == Type::kBf16 && !multiplies_bf16(device))) return low;
    const auto dtype = type == Type::kFp16 ? at::kHalf : at::kBFloat16;
    for (const std::string& name : model.blocks()[block]->lowered_weights()) low.emplace(name, dtype);
    for (const components::part::NamedLinear& named : model.blocks()[block]->linears()) {
      const auto& terms = named.linear->all_terms();
      const bool is_read =
          std::any_of(terms.begin(), terms.end(), [](const auto& term) { return term->reads_weight(); });
      if (!is_read) low.emplace(named.name + ".weight", dtype);
    }
    return low;
  };
  std::map<std::string, c10::ScalarType> low;
  for (std::size_t i = 0; i < model.blocks().size(); ++i) {
    const auto of_block = lowered_of(i);
    for (const components::NamedTensor& parameter : model.blocks()[i]->parameters()) {
      const auto found = of_block.find(parameter.name);
      if (found != of_block.end() && parameter.tensor.scalar_type() == at::kFloat) low.insert(*found);
    }
  }
  for (std::size_t i = 0; i < model.blocks().size(); ++i) {
    const auto of_block = lowered_of(i);
    for (const components::block::Tie& tie : model.blocks()[i]->ties()) {
      const auto mine = of_block.find(tie.owner);
      const auto owners = low.find(tie.owner);
      if (owners != low.end() && (mine == of_block.end() || mine->second != owners->second)) low.erase(owners);
    }
  }
  return low;
}

void set_matmul_precision(const Config& config) {
  at::globalContext().setFloat32MatmulPrecision(std::string(to_text(config.matmul_precision)));
}

}  // namespace runner::train

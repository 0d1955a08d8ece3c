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

void set_matmul_precision(const Config& config) {
  at::globalContext().setFloat32MatmulPrecision(std::string(to_text(config.matmul_precision)));
}

}  // namespace runner::train

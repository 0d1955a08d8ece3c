#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "components/adapter/adapter.h"
#include "components/adapter/low_rank.h"
#include "components/adapter/target_names.h"
#include "components/part/linear_term.h"
#include "components/tensor/tensors.h"
#include "generated/adapter/lora.h"  // Config; declares make()
#include "runner/core/text/suggest.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
#include "runner/pretrained/adapter_config.h"
#include "runner/pretrained/adapter_file.h"
#include "runner/pretrained/adapter_layers.h"
#include "runner/pretrained/model_type.h"

namespace components::adapter::lora {
namespace {

using runner::core::Node;

constexpr const char* kAllLinear = "all-linear";

class Lora final : public Adapter {
 public:
  Lora(std::vector<AdaptedLayer> layers, std::vector<std::shared_ptr<LowRank>> terms)
      : layers_(std::move(layers)), terms_(std::move(terms)) {}
  const std::vector<AdaptedLayer>& layers() const override { return layers_; }
  void begin() const override {
    for (const auto& term : terms_) term->begin();
  }

 private:
  std::vector<AdaptedLayer> layers_;
  std::vector<std::shared_ptr<LowRank>> terms_;
};

/// What the configuration says about the layers of a model.
class Choice {
 public:
  Choice(const Config& config, const Inputs& inputs)
      : config_(config), inputs_(inputs), all_(all_targets(inputs.model, inputs.model_block)) {}

  /// Empty when `diagnostics` got an error.
  std::vector<Target> targets() {
    if (all_.empty()) {
      error(inputs_.block, "the model has no layers that an adapter can change",
            "adapters are for the models gpt, llama and transformers");
      return {};
    }
    if (begins_from_file() && !fits_file()) return {};
    std::vector<bool> chosen = targeted();
    if (config_.exclude_modules) {
      const std::vector<bool> excluded =
          TargetNames("exclude_modules", key("exclude_modules"), all_, inputs_.diagnostics).chosen();
      for (std::size_t i = 0; i < all_.size(); ++i) chosen[i] = chosen[i] && !excluded[i];
    }
    keep_blocks(chosen);
    std::vector<Target> targets;
    for (std::size_t i = 0; i < all_.size(); ++i) {
      if (chosen[i]) targets.push_back(all_[i]);
    }
    if (targets.empty() && !failed()) {
      error(inputs_.block, "exclude_modules and layers_to_transform leave no layer to adapt",
            "name fewer layers there");
    }
    check_ranks(targets);
    check_experts(targets);
    if (failed()) targets.clear();
    return targets;
  }

 private:
  const Node& key(const char* name) const { return *inputs_.block.find(name); }
  void error(const Node& at, const std::string& message, const std::string& hint) const {
    inputs_.diagnostics.error(at.location(), message, hint);
  }
  bool failed() const { return inputs_.diagnostics.error_count() != before_; }

  /// Whether the layers were read from the folder of an adapter just now. A run that began from one has recorded them.
  bool begins_from_file() const {
    return config_.path && config_.target_modules && key("target_modules").has_origin(runner::core::Origin::kAdapter);
  }

  /// Whether the adapter to begin from is of such a model, as far as its folder is there. One error names the first
  /// layer of another one.
  bool fits_file() const {
    namespace pretrained = runner::pretrained;
    if (pretrained::adapter_config_of_folder(*config_.path).empty()) return true;
    const auto adapter = pretrained::open_adapter(*config_.path);
    if (!adapter) {
      error(key("path"), adapter.failure().message, adapter.failure().hint);
      return false;
    }
    for (const auto& pair : adapter.value().file.pairs()) {
      const auto at =
          std::find_if(all_.begin(), all_.end(), [&](const Target& target) { return target.module == pair.module; });
      const std::string module = runner::core::escape_for_terminal(pair.module);
      if (at == all_.end()) {
        error(key("path"), "the adapter of " + *config_.path + " changes " + module + ", which the model does not have",
              "it was trained for another model");
        return false;
      }
      const std::int64_t in = at->owner.linear->product().in();
      if (pair.a->shape[1] == in && pair.b->shape[0] == at->out) continue;
      error(key("path"),
            "the adapter of " + *config_.path + " has " + std::to_string(pair.a->shape[1]) + " inputs and " +
                std::to_string(pair.b->shape[0]) + " outputs for " + module + ", and the model has " +
                std::to_string(in) + " and " + std::to_string(at->out),
            "it was trained for another model");
      return false;
    }
    std::vector<std::string> modules;
    for (const Target& target : all_) modules.push_back(target.module);
    const auto whole = pretrained::check_holds_all(adapter.value(), modules);
    if (!whole) error(key("path"), whole.failure().message, whole.failure().hint);
    return whole.ok();
  }

  std::vector<bool> targeted() const {
    if (!config_.target_modules) return by_default();
    const Node& value = key("target_modules");
    if (value.is_string() && runner::core::lower(value.as_string()) == kAllLinear) {
      if (has_experts()) {
        error(value,
              "target_modules is all-linear, which names the experts of a mixture, too, and roux does not adapt those",
              kOfAttention);
      }
      return std::vector<bool>(all_.size(), true);
    }
    return TargetNames("target_modules", value, all_, inputs_.diagnostics).chosen();
  }

  std::vector<bool> by_default() const {
    const runner::pretrained::ModelType* type = runner::pretrained::model_type_of(inputs_.model_block);
    if (type == nullptr || type->adapter_targets.empty()) {
      error(inputs_.block, "PEFT has no default target_modules for this model",
            has_experts() ? kOfAttention : "write target_modules: all-linear");
      return std::vector<bool>(all_.size(), false);
    }
    Node list = Node::sequence();
    for (const std::string& name : type->adapter_targets) list.items().push_back(Node::string(name));
    return TargetNames("target_modules", list, all_, inputs_.diagnostics).chosen();
  }

  void keep_blocks(std::vector<bool>& chosen) const {
    if (!config_.layers_to_transform) return;
    const std::int64_t blocks = all_.back().block + 1;
    for (const Node& number : key("layers_to_transform").items()) {
      if (number.as_integer() < blocks) continue;
      error(number,
            "layers_to_transform names block " + std::to_string(number.as_integer()) + ", but the model has " +
                std::to_string(blocks) + " blocks",
            "they are numbered from 0 to " + std::to_string(blocks - 1));
    }
    const std::vector<std::int64_t>& kept = *config_.layers_to_transform;
    for (std::size_t i = 0; i < all_.size(); ++i) {
      chosen[i] = chosen[i] && std::find(kept.begin(), kept.end(), all_[i].block) != kept.end();
    }
  }

  /// Of blocks with a mixture of experts, or of the others beside them; nothing: of all blocks.
  std::optional<bool> of_mixture(const Target& target) const {
    const runner::pretrained::ModelType* type = runner::pretrained::model_type_of(inputs_.model_block);
    const auto* const rule = type != nullptr ? type->rule_of(target.owner.name + ".weight") : nullptr;
    return rule != nullptr ? rule->mixture : std::nullopt;
  }
  bool has_experts() const {
    return std::any_of(all_.begin(), all_.end(), [this](const Target& target) { return of_mixture(target) == true; });
  }

  /// What PEFT would make of the adapter beside a mixture: it takes the names of an MLP for those of the experts, and
  /// the router for a parameter.
  void check_experts(const std::vector<Target>& targets) const {
    if (!has_experts() || failed()) return;
    for (const Target& target : targets) {
      const std::optional<bool> mixture = of_mixture(target);
      if (mixture == false) {
        return error(key("target_modules"),
                     "target_modules names " + target.module +
                         ", and PEFT takes that for the experts of the other layers, which roux does not adapt",
                     kOfAttention);
      }
      if (mixture == true && (config_.lora_dropout > 0 || config_.use_dora)) {
        return error(key(config_.use_dora ? "use_dora" : "lora_dropout"),
                     "target_modules names the router " + target.module + ", which PEFT adapts without " +
                         (config_.use_dora ? "use_dora" : "lora_dropout"),
                     "leave out " + std::string(config_.use_dora ? "use_dora" : "lora_dropout") + " or the router");
      }
    }
  }

  void check_ranks(const std::vector<Target>& targets) const {
    for (const Target& target : targets) {
      const std::int64_t in = target.owner.linear->product().in(), most = std::min(in, target.out);
      if (config_.r <= most) continue;
      const Node* written = inputs_.block.find("r");
      error(written != nullptr ? *written : inputs_.block,
            "r is " + std::to_string(config_.r) + ", but " + target.name + " has " + std::to_string(in) +
                " inputs and " + std::to_string(target.out) + " outputs",
            "set r to " + std::to_string(most) + " or less");
      return;
    }
  }

  static constexpr const char* kOfAttention = "write target_modules: [q_proj, k_proj, v_proj, o_proj]";

  const Config& config_;
  const Inputs& inputs_;
  std::vector<Target> all_;
  const int before_ = inputs_.diagnostics.error_count();
};

/// How A and B begin in PEFT, `init_lora_weights`.
LowRankOptions options_of(const Config& config, const Target& target) {
  LowRankOptions options;
  options.name = target.name;
  options.adapter = config.name;
  options.in = target.owner.linear->product().in();
  options.rank = config.r;
  options.first = target.first;
  options.out = target.out;
  const Node& init = config.init_lora_weights;
  const bool gaussian = init.is_string(), zeros = gaussian || init.as_bool();
  options.a = gaussian ? part::normal(1.0 / static_cast<double>(config.r)) : part::kaiming_uniform(options.in);
  options.b = zeros ? part::constant(0.0) : part::kaiming_uniform(config.r);
  const auto r = static_cast<double>(config.r);
  options.scale = config.lora_alpha / (config.use_rslora ? std::sqrt(r) : r);
  options.dropout = config.lora_dropout;
  if (config.use_dora) options.decomposed = target.owner.linear;
  return options;
}

/// Only the adapters are trained, and the biases that the configuration names.
void freeze_base(const Config& config, const std::vector<Target>& targets, const Inputs& inputs) {
  std::map<std::string, std::int64_t> adapted;  // outputs, by the name of a layer's bias
  for (const Target& target : targets) adapted[target.owner.name + ".bias"] += target.out;
  for (const NamedTensor& parameter : inputs.model.parameters()) {
    if (part::is_of_term(parameter.name)) continue;
    const auto layer = adapted.find(parameter.name);
    const bool of_adapted = config.bias == Bias::kLoraOnly && layer != adapted.end();
    if (of_adapted && layer->second < parameter.tensor.size(0)) {
      inputs.diagnostics.error(inputs.block.find("bias")->location(),
                               "bias is lora_only, but only a part of " + parameter.name + " belongs to adapted layers",
                               "use bias: all, or adapt all layers that are joined in it");
      return;
    }
    parameter.tensor.set_requires_grad(of_adapted || (config.bias == Bias::kAll && parameter.name.ends_with(".bias")));
  }
}

/// Names of a parameter's tensors in Transformers; empty for what it does not have.
std::vector<std::string> tensors_of(const runner::pretrained::ModelType* type, const NamedTensor& parameter) {
  if (type == nullptr) return {};
  for (const auto& rule : type->weights) {
    const auto number = runner::pretrained::number_in(rule.name, parameter.name);
    if (number) return rule.parts(*number, rule.is_of_experts() ? parameter.tensor.size(0) : 1);
  }
  return {};
}

/// Trains the modules that `modules_to_save` names.
class SavedModules {
 public:
  SavedModules(const std::vector<Target>& targets, const Inputs& inputs)
      : targets_(targets),
        inputs_(inputs),
        written_(inputs.block.find("modules_to_save")),
        type_(runner::pretrained::model_type_of(inputs.model_block)),
        names_(runner::pretrained::saved_modules(written_, learns() ? type_ : nullptr)) {}

  void train() const {
    if (names_.items().empty()) return;
    std::vector<std::string> of_model;
    for (const NamedTensor& parameter : inputs_.model.parameters()) {
      const std::vector<std::string> tensors = tensors_of(type_, parameter);
      of_model.insert(of_model.end(), tensors.begin(), tensors.end());
      const auto is_saved = [this](const std::string& tensor) {
        return runner::pretrained::is_saved_module(&names_, tensor);
      };
      const auto count = std::count_if(tensors.begin(), tensors.end(), is_saved);
      if (count == 0) continue;
      if (count < static_cast<std::ptrdiff_t>(tensors.size()))
        return error("modules_to_save names a part of " + parameter.name + ", in which roux joins " +
                         runner::core::joined(tensors),
                     "name all of them");
      if (is_adapted(parameter.name))
        return error("modules_to_save names " + tensors.front() + ", which is adapted, too",
                     "leave it out of one of modules_to_save and target_modules");
      if (is_tied(parameter.name))
        return error("modules_to_save names " + tensors.front() + ", which the head and the embedding share", kTied);
      parameter.tensor.set_requires_grad(true);
    }
    tell_unused(of_model);
  }

 private:
  static constexpr const char* kTied =
      "train it with training.train_only, and export the whole model: `roux export --merge`";

  /// Whether one of the model's adapters is trained, this one or an earlier one.
  bool learns() const {
    const auto all = inputs_.model.parameters();
    return std::any_of(all.begin(), all.end(), [](const NamedTensor& parameter) {
      return part::is_of_term(parameter.name) && parameter.tensor.requires_grad();
    });
  }

  void error(const std::string& message, const std::string& hint) const {
    const bool is_written = written_ != nullptr && !written_->is_null();
    inputs_.diagnostics.error((is_written ? *written_ : inputs_.block).location(), message, hint);
  }

  bool is_adapted(const std::string& parameter) const {
    return std::any_of(targets_.begin(), targets_.end(), [&](const Target& target) {
      return parameter == target.owner.name + ".weight" || parameter == target.owner.name + ".bias";
    });
  }

  bool is_tied(const std::string& parameter) const {
    const auto ties = inputs_.model.ties();
    return std::any_of(ties.begin(), ties.end(), [&](const auto& tie) { return tie.owner == parameter; });
  }

  /// `tensors`: Transformers' names of all.
  void tell_unused(const std::vector<std::string>& tensors) const {
    const bool has_labels = type_ != nullptr && runner::pretrained::has_head_of_labels(*type_);
    for (const Node& name : names_.items()) {
      const Node one = Node::sequence({name});
      const auto is_of = [&one](const std::string& tensor) {
        return runner::pretrained::is_saved_module(&one, tensor);
      };
      if (std::any_of(tensors.begin(), tensors.end(), is_of)) continue;
      if (has_labels && runner::pretrained::is_head_module(name.as_string())) continue;  // of another type
      if (name.as_string() == "lm_head" && !inputs_.model.ties().empty())
        return error("modules_to_save names lm_head, which shares its weight with the embedding", kTied);
      std::vector<std::string> last;
      for (const std::string& tensor : tensors) {
        const std::string module = tensor.substr(0, tensor.rfind('.'));
        const std::string end = module.substr(module.rfind('.') + 1);
        if (std::find(last.begin(), last.end(), end) == last.end()) last.push_back(end);
      }
      const std::string near = runner::core::closest(name.as_string(), last);
      return error("modules_to_save names no module of the model: \"" + name.as_string() + "\"",
                   near.empty() ? "it has " + runner::core::joined(last) : "did you mean \"" + near + "\"?");
    }
  }

  const std::vector<Target>& targets_;
  const Inputs& inputs_;
  const Node* written_;
  const runner::pretrained::ModelType* type_;
  Node names_;  ///< with those that PEFT adds
};

}  // namespace

std::shared_ptr<Adapter> make(const Config& config, const Inputs& inputs) {
  const std::vector<Target> targets = Choice(config, inputs).targets();
  if (targets.empty()) return nullptr;
  const int before = inputs.diagnostics.error_count();
  std::vector<AdaptedLayer> layers;
  std::vector<std::shared_ptr<LowRank>> terms;
  for (const Target& target : targets) {
    const LowRankOptions options = options_of(config, target);
    terms.push_back(std::make_shared<LowRank>(options, inputs.weights));
    for (const NamedTensor& tensor : terms.back()->tensors()) tensor.tensor.set_requires_grad(config.trained);
    target.owner.linear->add_term(terms.back());
    layers.push_back({target.name, target.module, options.scale});
  }
  freeze_base(config, targets, inputs);
  SavedModules(targets, inputs).train();
  if (inputs.diagnostics.error_count() != before) return nullptr;
  return std::make_shared<Lora>(std::move(layers), std::move(terms));
}

}  // namespace components::adapter::lora

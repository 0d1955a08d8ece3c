#include "runner/pretrained/adapter_layers.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "runner/core/error.h"
#include "runner/core/language/pattern.h"
#include "runner/core/text/text.h"
#include "runner/pretrained/facts.h"

namespace runner::pretrained {
namespace {

using core::Node;

constexpr std::string_view kWeight = ".weight";
constexpr const char* kAllLinear = "all-linear";
constexpr std::string_view kDecoderBlock = "h.";  ///< begins the names of blocks, but of those of an encoder beside it

/// What PEFT calls the head of a model of AutoModelForSequenceClassification or TokenClassification, whatever the type.
constexpr const char* kHeadModules[] = {"classifier", "score"};
/// The same of AutoModelForQuestionAnswering.
constexpr const char* kAnswerModules[] = {"qa_outputs"};

std::span<const char* const> head_modules(const ModelType& type) {
  if (type.head == kQuestionAnswering) return kAnswerModules;
  return kHeadModules;
}

/// A tensor's name is layer + begin, of an adapter that is not the default one . + adapter, + end.
struct PartName {
  AdapterTensor::Part part;
  std::string_view begin, end;
};
constexpr PartName kParts[] = {{AdapterTensor::Part::kA, ".lora_A", kWeight},
                               {AdapterTensor::Part::kB, ".lora_B", kWeight},
                               {AdapterTensor::Part::kMagnitude, ".lora_magnitude_vector", ""}};

/// `model.layers.0.mlp.down_proj` without its weight.
std::string module_of(const std::string& weight, std::int64_t number) {
  const std::string name = with_number(weight, number);
  return name.substr(0, name.size() - kWeight.size());
}

std::string last_part(const std::string& name) { return name.substr(name.find_last_of('.') + 1); }

/// Weights of linear layers of a block: all but those of norms, and the stacks of experts, which are none.
bool is_linear(const WeightRule& rule) {
  return rule.name.find("{i}") != std::string::npos && rule.name.ends_with(kWeight) &&
         rule.name.find(".ln_") == std::string::npos && rule.name.find("norm") == std::string::npos &&
         !rule.is_of_experts();
}

/// Weights of linear layers behind the blocks.
bool is_of_head(const WeightRule& rule) {
  return rule.name.starts_with("head.") && rule.name.ends_with(kWeight) && rule.name.find("norm") == std::string::npos;
}

/// The last `parts` parts of a name; the whole where it has no more.
std::string ending(const std::string& name, int parts) {
  std::size_t at = name.size();
  for (int i = 0; i < parts && at != std::string::npos && at > 0; ++i) at = name.rfind('.', at - 1);
  return at == std::string::npos || at == 0 ? name : name.substr(at + 1);
}

/// Whether PEFT finds the module by a list of names, as the end of its name, or by an expression that its whole name
/// matches. Nothing for an expression that is none here.
std::optional<bool> is_named(const Node& choice, const std::string& module) {
  if (choice.is_string()) {
    if (core::lower(choice.as_string()) == kAllLinear) return true;
    const auto pattern = core::Pattern::make(choice.as_string(), core::Pattern::Syntax::kPython);
    if (!pattern) return std::nullopt;
    return pattern.value().is_whole(module);
  }
  return std::any_of(choice.items().begin(), choice.items().end(), [&module](const Node& name) {
    return module == name.as_string() || module.ends_with("." + name.as_string());
  });
}

/// The number in `model.layers.3.mlp`; -1 for none.
std::int64_t block_of(const std::string& module) {
  static const core::Pattern number = core::Pattern::make("\\.([0-9]{1,9})\\.").value();
  const auto found = number.find(module, 0);
  return found.empty() ? -1 : std::stol(std::string(found[1]));
}

bool is_in_blocks(const Node& blocks, const std::string& module) {
  const std::int64_t block = block_of(module);
  if (blocks.is_integer()) return blocks.as_integer() == block;
  return !blocks.is_sequence() || blocks.items().empty() ||
         std::any_of(blocks.items().begin(), blocks.items().end(),
                     [block](const Node& number) { return number.as_integer() == block; });
}

}  // namespace

std::optional<AdapterTensor> adapter_tensor(std::string_view name) {
  const std::size_t at = name.rfind(".lora_");
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view what = name.substr(at);
  for (const PartName& part : kParts) {
    if (!what.starts_with(part.begin) || !what.ends_with(part.end)) continue;
    if (what.size() < part.begin.size() + part.end.size()) continue;
    what = what.substr(part.begin.size(), what.size() - part.begin.size() - part.end.size());
    if (!what.empty() && (what.front() != '.' || what.size() == 1)) return std::nullopt;
    return AdapterTensor{std::string(name.substr(0, at)), part.part,
                         what.empty() ? kDefaultAdapter : std::string(what.substr(1))};
  }
  return std::nullopt;
}

std::string name_of_tensor(const AdapterTensor& tensor) {
  std::string name = tensor.layer;
  for (const PartName& part : kParts) {
    if (part.part != tensor.part) continue;
    name += part.begin;
    if (tensor.adapter != kDefaultAdapter) name += "." + tensor.adapter;
    name += part.end;
  }
  return name;
}

std::string adapter_of_block(const Node& block) {
  const Node* name = block.find("name");
  return name != nullptr && name->is_string() ? name->as_string() : kDefaultAdapter;
}

bool is_saved_module(const Node* modules_to_save, std::string_view tensor) {
  if (modules_to_save == nullptr || !modules_to_save->is_sequence()) return false;
  const auto names = [modules_to_save](std::string_view module) {
    return std::any_of(modules_to_save->items().begin(), modules_to_save->items().end(),
                       [module](const Node& name) { return name.is_string() && module.ends_with(name.as_string()); });
  };
  for (std::size_t end = tensor.rfind('.'); end != std::string_view::npos && end > 0;
       end = tensor.rfind('.', end - 1)) {
    if (names(tensor.substr(0, end))) return true;
  }
  return false;
}

bool has_head_of_labels(const ModelType& type) { return type.has_own_head(); }

bool is_head_module(std::string_view name) {
  return std::find(std::begin(kHeadModules), std::end(kHeadModules), name) != std::end(kHeadModules) ||
         name == kAnswerModules[0];
}

Node saved_modules(const Node* modules_to_save, const ModelType* type) {
  const bool is_list = modules_to_save != nullptr && modules_to_save->is_sequence();
  Node all = is_list ? *modules_to_save : Node::sequence();
  if (type == nullptr || !has_head_of_labels(*type)) return all;
  for (const char* const module : head_modules(*type)) {
    const bool is_there = std::any_of(all.items().begin(), all.items().end(), [module](const Node& name) {
      return name.is_string() && name.as_string() == module;
    });
    if (!is_there) all.items().push_back(Node::string(module));
  }
  return all;
}

std::string module_of_layer(const ModelType& type, const std::string& layer) {
  for (const WeightRule& rule : type.weights) {
    if (const auto alone = number_in(rule.name, layer + std::string(kWeight)); alone && rule.from.size() == 1) {
      return module_of(rule.from.front(), *alone);
    }
    const std::string part = last_part(layer);
    const std::string joined = layer.substr(0, layer.size() - std::min(layer.size(), part.size() + 1));
    const auto number = number_in(rule.name, joined + std::string(kWeight));
    if (!number) continue;
    for (const std::string& from : rule.from) {
      std::string module = module_of(from, *number);
      if (rule.from.size() > 1 && last_part(module) == part) return module;
    }
  }
  return "";
}

std::vector<std::string> linear_modules(const ModelType& type, const Node& config) {
  const Facts facts(type, config);
  const std::int64_t layers = facts.integer("layers", 0), of_decoder = facts.integer("decoder_layers", layers);
  std::vector<std::string> modules;
  const std::vector<bool> mixtures = facts.mixtures();
  const auto has = [&](const WeightRule& rule, std::int64_t block) {
    return !rule.mixture || *rule.mixture == (!mixtures.empty() && mixtures[static_cast<std::size_t>(block)]);
  };
  for (const WeightRule& rule : type.weights) {
    if (!is_linear(rule) || rule.gated.value_or(facts.gated()) != facts.gated()) continue;
    const std::int64_t blocks = rule.name.starts_with(kDecoderBlock) ? of_decoder : layers;
    for (const std::string& from : rule.from) {
      for (std::int64_t block = 0; block < blocks; ++block) {
        if (has(rule, block)) modules.push_back(module_of(from, block));
      }
    }
  }
  return modules;
}

std::optional<std::vector<std::string>> adapted_modules(const Node& config, const std::vector<std::string>& modules) {
  std::vector<std::string> adapted;
  for (const std::string& module : modules) {
    const auto wanted = is_named(*config.find("target_modules"), module);
    const auto left_out = is_named(*config.find("exclude_modules"), module);
    if (!wanted || !left_out) return std::nullopt;
    if (*wanted && !*left_out && is_in_blocks(*config.find("layers_to_transform"), module)) adapted.push_back(module);
  }
  return adapted;
}

Node target_modules(const ModelType& type, const Node& config, const std::vector<std::string>& modules) {
  constexpr int kPartsMax = 2;  // `c_proj`, or `mlp.c_proj`; then whole names
  const std::set<std::string> wanted(modules.begin(), modules.end());
  std::vector<std::map<std::string, bool>> wanted_all(kPartsMax);  // by ending: whether all modules of it are wanted
  std::vector<std::string> there = linear_modules(type, config);
  for (const WeightRule& rule : type.weights) {
    if (is_of_head(rule)) there.push_back(module_of(rule.from.front(), -1));
  }
  for (const std::string& module : there) {
    for (int parts = 1; parts <= kPartsMax; ++parts) {
      auto& all = wanted_all[static_cast<std::size_t>(parts - 1)];
      const bool before = all.emplace(ending(module, parts), true).first->second;
      all[ending(module, parts)] = before && wanted.contains(module);
    }
  }
  std::set<std::string> names;
  for (const std::string& module : wanted) {
    std::string name = module;
    for (int parts = kPartsMax; parts >= 1; --parts) {
      const auto& all = wanted_all[static_cast<std::size_t>(parts - 1)];
      const auto at = all.find(ending(module, parts));
      if (at != all.end() && at->second) name = at->first;
    }
    names.insert(std::move(name));
  }
  Node list = Node::sequence();
  for (const std::string& name : names) list.items().push_back(Node::string(name));
  return list;
}

core::Result<void> check_adapter_export(const Node& resolved) {
  const Node* more = resolved.at_path("training.train_only");
  if (more == nullptr || !more->is_sequence() || more->items().empty()) return {};
  return core::Failure{"training.train_only trains more than the adapters, which alone are exported",
                       "export the whole model: `roux export --merge`, or checkpoint.export: merged", core::kExitUsage};
}

}  // namespace runner::pretrained

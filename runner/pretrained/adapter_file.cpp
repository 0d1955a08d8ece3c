#include "runner/pretrained/adapter_file.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>
#include <system_error>
#include <utility>

#include "runner/artifact/io/element.h"
#include "runner/artifact/tensor_compare.h"
#include "runner/artifact/tensor_set.h"
#include "runner/core/error.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
#include "runner/pretrained/adapter_config.h"
#include "runner/pretrained/adapter_layers.h"

namespace runner::pretrained {
namespace {

namespace fs = std::filesystem;

using artifact::TensorBytes;
using core::Failure;
using core::Node;
using Part = AdapterName::Part;

constexpr std::string_view kPrefix = "base_model.model.";
constexpr std::string_view kBase = ".base_layer";
constexpr std::string_view kCopies[] = {".modules_to_save.", ".original_module."};
constexpr std::size_t kLackingShown = 3;
constexpr const char* kTorchFile = "adapter_model.bin";

struct Suffix {
  Part part;
  std::string_view text;
};
constexpr Suffix kSuffixes[] = {{Part::kA, ".lora_A.weight"},
                                {Part::kB, ".lora_B.weight"},
                                {Part::kMagnitude, ".lora_magnitude_vector"},
                                {Part::kBias, ".bias"}};

}  // namespace

std::optional<AdapterName> parse_adapter_name(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  for (const Suffix& suffix : kSuffixes) {
    if (!name.ends_with(suffix.text)) continue;
    std::string_view module = name.substr(0, name.size() - suffix.text.size());
    if (suffix.part == Part::kBias && module.ends_with(kBase)) module.remove_suffix(kBase.size());
    if (module.empty() || module.ends_with(kBase) || module.find(".lora_") != std::string_view::npos) break;
    return AdapterName{suffix.part, std::string(module)};
  }
  return std::nullopt;
}

std::string saved_module_name(const std::string& tensor) { return std::string(kPrefix) + tensor; }

std::string adapter_name(const std::string& module, Part part, bool adapted) {
  std::string name = std::string(kPrefix) + module;
  if (part == Part::kBias && adapted) name += kBase;
  for (const Suffix& suffix : kSuffixes) {
    if (suffix.part == part) name += suffix.text;
  }
  return name;
}

core::Result<AdapterFile> AdapterFile::open(const std::string& folder, const core::Node& config) {
  std::error_code failed;
  AdapterFile file;
  file.path_ = (fs::path(folder) / kAdapterFile).string();
  const std::string older = (fs::path(folder) / kTorchFile).string();
  if (!fs::exists(file.path_, failed) && fs::exists(older, failed)) file.path_ = older;
  auto reader = artifact::open_tensor_file(file.path_);
  if (!reader) return Failure{reader.failure().message, reader.failure().hint, core::kExitUsage};
  file.reader_ = std::move(reader).value();
  if (const auto taken = file.take(config); !taken) {
    return Failure{file.path_ + ": " + taken.failure().message, taken.failure().hint, core::kExitUsage};
  }
  return file;
}

core::Result<void> AdapterFile::take(const core::Node& config) {
  std::map<std::string, LowRankPair> pairs;
  const std::string& bias = config.find("bias")->as_string();
  const std::int64_t r = config.find("r")->as_integer();
  for (const TensorBytes& tensor : reader_->tensors()) {
    const std::optional<AdapterName> name = parse_adapter_name(tensor.name);
    const std::string told = core::quote(tensor.name);
    // With biases PEFT writes those of a module that it saves once more, under the names of its wrapper.
    if (std::any_of(std::begin(kCopies), std::end(kCopies),
                    [&](std::string_view copy) { return tensor.name.find(copy) != std::string::npos; }))
      continue;
    const bool adapts = name && name->part != Part::kBias;
    if (!adapts && tensor.name.starts_with(kPrefix) &&
        is_saved_module(config.find("modules_to_save"), tensor.name.substr(kPrefix.size()))) {
      if (!artifact::is_floating(tensor.dtype) || tensor.dtype.starts_with("F8"))
        return Failure{told + " is of type " + tensor.dtype + ", but has to be F32, BF16, F16 or F64"};
      modules_[tensor.name.substr(kPrefix.size())] = &tensor;
      continue;
    }
    if (!name) {
      return Failure{told + " is not a tensor of LoRA on linear layers",
                     "roux reads MODULE.lora_A.weight, MODULE.lora_B.weight, MODULE.lora_magnitude_vector, biases and "
                     "modules_to_save, behind "
                     "base_model.model."};
    }
    if (!artifact::is_floating(tensor.dtype) || tensor.dtype.starts_with("F8")) {
      return Failure{told + " is of type " + tensor.dtype + ", but has to be F32, BF16, F16 or F64"};
    }
    if (name->part == Part::kBias) {
      if (bias == "none") return Failure{told + " is a bias, and bias is none in " + kAdapterConfigFile};
      if (tensor.shape.size() != 1)
        return Failure{told + " is " + artifact::shape_text(tensor.shape) + ", which no bias is"};
      biases_[name->module + ".bias"] = &tensor;
      continue;
    }
    if (name->part == Part::kMagnitude) {
      if (!config.find("use_dora")->as_bool())
        return Failure{told + " is of DoRA, and use_dora is false in " + kAdapterConfigFile};
      if (tensor.shape.size() != 1)
        return Failure{told + " is " + artifact::shape_text(tensor.shape) + ", which no magnitude is"};
      pairs[name->module].magnitude = &tensor;
      continue;
    }
    const std::size_t of_rank = name->part == Part::kA ? 0 : 1;
    if (tensor.shape.size() != 2 || tensor.shape[of_rank] != r || tensor.shape[1 - of_rank] < 1) {
      return Failure{told + " is " + artifact::shape_text(tensor.shape) + ", which does not fit r " +
                     std::to_string(r)};
    }
    LowRankPair& pair = pairs[name->module];
    (name->part == Part::kA ? pair.a : pair.b) = &tensor;
  }
  for (auto& [module, pair] : pairs) {
    if (pair.a == nullptr && pair.b == nullptr)
      return Failure{core::quote(module) + " has a lora_magnitude_vector without its lora_A and lora_B"};
    if (pair.a == nullptr || pair.b == nullptr) {
      return Failure{core::quote(module) + " has a lora_" + (pair.a != nullptr ? "A" : "B") + " without its lora_" +
                     (pair.a != nullptr ? "B" : "A")};
    }
    if (config.find("use_dora")->as_bool() &&
        (pair.magnitude == nullptr || pair.magnitude->shape[0] != pair.b->shape[0])) {
      return Failure{core::quote(module) + " has no lora_magnitude_vector for its " + std::to_string(pair.b->shape[0]) +
                     " outputs, and use_dora is true in " + kAdapterConfigFile};
    }
    pair.module = module;
    pairs_.push_back(std::move(pair));
  }
  if (pairs_.empty()) return Failure{"no lora_A and lora_B in the file"};
  return {};
}

core::Failure first_error(const core::Diagnostics& diagnostics) {
  for (const core::Diagnostic& told : diagnostics.all()) {
    if (told.severity != core::Severity::kError) continue;
    const std::string at = told.location.text();
    return {(at.empty() ? "" : at + ": ") + told.message, told.hint, core::kExitUsage};
  }
  return {"no error", "", core::kExitUsage};
}

namespace {

/// The modules that were trained whole.
core::Result<void> check_holds_saved(const OpenedAdapter& adapter) {
  const auto holds = [&adapter](const Node& name) {
    Node one = Node::sequence();
    one.items().push_back(name);
    const auto& held = adapter.file.modules();
    return std::any_of(held.begin(), held.end(),
                       [&one](const auto& module) { return is_saved_module(&one, module.first); });
  };
  const std::vector<Node>& saved = adapter.config.find("modules_to_save")->items();
  // PEFT writes each name that a head may have; a model has one of them.
  const bool has_head = std::any_of(saved.begin(), saved.end(), [&holds](const Node& name) {
    return is_head_module(name.as_string()) && holds(name);
  });
  for (const Node& name : saved) {
    if (holds(name) || (has_head && is_head_module(name.as_string()))) continue;
    return Failure{adapter.file.path() + " has no " + core::quote(name.as_string()) + ", which modules_to_save in " +
                       kAdapterConfigFile + " names",
                   "it was not saved whole: save it again, or take the name out there", core::kExitUsage};
  }
  return {};
}

}  // namespace

core::Result<void> check_holds_all(const OpenedAdapter& adapter, const std::vector<std::string>& linear_modules) {
  std::set<std::string> held;
  for (const LowRankPair& pair : adapter.file.pairs()) held.insert(pair.module);
  std::vector<std::string> lacking;
  for (const std::string& module :
       adapted_modules(adapter.config, linear_modules).value_or(std::vector<std::string>())) {
    if (!held.contains(module)) lacking.push_back(module);
  }
  if (lacking.empty()) return check_holds_saved(adapter);
  return Failure{adapter.file.path() + " has no lora_A and lora_B of " + core::joined_first(lacking, kLackingShown) +
                     ", which " + kAdapterConfigFile + " adapts",
                 "it was not saved whole: save it again, or change target_modules there to what it holds",
                 core::kExitUsage};
}

core::Result<OpenedAdapter> open_adapter(const std::string& folder) {
  core::Diagnostics diagnostics;
  std::optional<core::Node> config = read_adapter_config(folder, diagnostics);
  if (!config) return first_error(diagnostics);
  auto file = AdapterFile::open(folder, *config);
  if (!file) return file.failure();
  return OpenedAdapter{*std::move(config), std::move(file).value()};
}

}  // namespace runner::pretrained

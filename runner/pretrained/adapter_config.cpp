#include "runner/pretrained/adapter_config.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "runner/core/error.h"
#include "runner/core/json.h"
#include "runner/core/platform/files.h"
#include "runner/core/text/suggest.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
#include "runner/pretrained/adapter_task.h"
#include "runner/pretrained/config.h"
#include "runner/recipe/read.h"

namespace runner::pretrained {
namespace {

namespace fs = std::filesystem;

using core::Diagnostics;
using core::Node;

constexpr std::int64_t kConfigBytesMax = 2 << 20;
constexpr std::int64_t kRankMax = 65536;
constexpr double kNumberMax = 1e30;
constexpr const char* kPeftVersion = "0.21.0";  // whose way of writing this is
constexpr std::size_t kShownMax = 60;

/// What a field of PEFT's LoraConfig means here.
struct Field {
  enum class Use {
    kRead,     ///< the adapter is made by it
    kNone,     ///< it changes nothing about an adapter that is trained
    kDefault,  ///< it may only have its default, as roux does not compute the rest
  };
  const char* name;
  Use use;
  const char* value;  ///< PEFT's default, as JSON; what is written where nothing else is said
};

// peft.LoraConfig 0.21, all of its fields.
constexpr Field kFields[] = {
    {"alora_invocation_tokens", Field::Use::kDefault, "null"},
    {"alpha_pattern", Field::Use::kDefault, "{}"},
    {"arrow_config", Field::Use::kDefault, "null"},
    {"auto_mapping", Field::Use::kNone, "null"},
    {"base_model_name_or_path", Field::Use::kRead, "null"},
    {"bias", Field::Use::kRead, "\"none\""},
    {"corda_config", Field::Use::kNone, "null"},  // of another init_lora_weights, as the other *_config
    {"ensure_weight_tying", Field::Use::kNone, "false"},
    {"eva_config", Field::Use::kNone, "null"},
    {"exclude_modules", Field::Use::kRead, "null"},
    {"fan_in_fan_out", Field::Use::kNone, "false"},  // PEFT sets it by the layer
    {"inference_mode", Field::Use::kNone, "true"},
    {"init_lora_weights", Field::Use::kRead, "true"},
    {"kasa_config", Field::Use::kDefault, "null"},
    {"layer_replication", Field::Use::kDefault, "null"},
    {"layers_pattern", Field::Use::kNone, "null"},
    {"layers_to_transform", Field::Use::kRead, "null"},
    {"loftq_config", Field::Use::kNone, "{}"},
    {"lora_alpha", Field::Use::kRead, "8"},
    {"lora_bias", Field::Use::kDefault, "false"},
    {"lora_dropout", Field::Use::kRead, "0.0"},
    {"lora_ga_config", Field::Use::kNone, "null"},
    {"megatron_config", Field::Use::kDefault, "null"},
    {"megatron_core", Field::Use::kNone, "\"megatron.core\""},
    {"modules_to_save", Field::Use::kRead, "null"},
    {"monteclora_config", Field::Use::kDefault, "null"},
    {"peft_type", Field::Use::kRead, "\"LORA\""},
    {"peft_version", Field::Use::kNone, "null"},
    {"qalora_group_size", Field::Use::kNone, "16"},
    {"r", Field::Use::kRead, "8"},
    {"rank_pattern", Field::Use::kDefault, "{}"},
    {"revision", Field::Use::kNone, "null"},
    {"runtime_config", Field::Use::kNone, ""},  // PEFT does not write it
    {"target_modules", Field::Use::kRead, "null"},
    {"target_parameters", Field::Use::kDefault, "null"},
    {"task_type", Field::Use::kRead, "null"},
    {"trainable_token_indices", Field::Use::kDefault, "null"},
    {"use_bdlora", Field::Use::kDefault, "null"},
    {"use_dora", Field::Use::kRead, "false"},
    {"use_qalora", Field::Use::kDefault, "false"},
    {"use_rslora", Field::Use::kRead, "false"},
    {"velora_config", Field::Use::kDefault, "null"},
};

/// Says nothing of the adapter: what a program that writes such files notes for itself.
bool is_metadata(std::string_view name) { return name.starts_with('_') || name == "transformers_version"; }

std::string shown(const Node& value) {
  if (value.is_null()) return "null";
  std::string text = core::to_json(value, -1);
  if (text.size() <= kShownMax) return text;
  return value.is_mapping() ? "an object" : value.is_sequence() ? "a list" : "a text";
}

bool is_text_list(const Node& value) {
  return value.is_sequence() && !value.items().empty() &&
         std::all_of(value.items().begin(), value.items().end(), [](const Node& item) { return item.is_string(); });
}

bool is_empty(const Node& value) {
  return value.is_null() || (value.is_mapping() && value.entries().empty()) ||
         (value.is_sequence() && value.items().empty());
}

class Checker {
 public:
  Checker(const Node& config, Diagnostics& diagnostics) : config_(config), diagnostics_(diagnostics) {}

  std::optional<Node> check() {
    if (!config_.is_mapping()) {
      error(config_, "the configuration of an adapter is an object, and this is " + shown(config_));
      return std::nullopt;
    }
    const int before = diagnostics_.error_count();
    check_method();
    if (diagnostics_.error_count() > before) return std::nullopt;  // other fields belong to the other method
    for (const Node::Entry& entry : config_.entries()) check_known(entry);
    check_values();
    if (diagnostics_.error_count() > before) return std::nullopt;
    return completed();
  }

 private:
  void error(const Node& at, const std::string& message, const std::string& hint = "") {
    diagnostics_.error(at.location(), message, hint);
  }

  /// Null where it has no value.
  const Node* get(const char* name) const {
    const Node* value = config_.find(name);
    return value != nullptr && !value->is_null() ? value : nullptr;
  }

  void check_method() {
    const Node* method = get("peft_type");
    if (method == nullptr) return error(config_, "the configuration has no peft_type", "roux reads LORA");
    if (method->is_string() && method->as_string() == "LORA") return;
    error(*method, "peft_type is " + shown(*method) + ", which roux does not compute", "it reads LORA");
  }

  void check_known(const Node::Entry& entry) {
    const auto* const field =
        std::find_if(std::begin(kFields), std::end(kFields), [&](const Field& f) { return entry.key == f.name; });
    if (field != std::end(kFields)) {
      if (field->use == Field::Use::kDefault) check_default(*field, entry.value);
      return;
    }
    if (is_metadata(entry.key) || entry.value.is_null()) return;  // null asks for nothing
    std::vector<std::string> names;
    for (const Field& known : kFields) names.emplace_back(known.name);
    const std::string near = core::closest(entry.key, names);
    diagnostics_.error(
        entry.key_location,
        core::quote(entry.key) + " is not a field of LoraConfig in PEFT 0.21: what it does to the adapter is unknown",
        near.empty() ? "remove it if it does nothing" : "did you mean \"" + near + "\"?");
  }

  void check_default(const Field& field, const Node& value) {
    if (is_empty(value) || core::to_json(value, -1) == field.value) return;
    error(value, std::string(field.name) + " is " + shown(value) + ", and roux computes adapters with " + field.value +
                     " only");
  }

  void must(const char* name, bool holds, const std::string& what, const std::string& hint = "") {
    if (!holds) error(*get(name), std::string(name) + " is " + shown(*get(name)) + ", but has to be " + what, hint);
  }

  void check_values() {
    if (const Node* task = get("task_type")) {
      must("task_type", task->is_string() && !head_of_task(task->as_string()).empty(),
           "one of " + core::joined(task_names()),
           "roux reads adapters of decoders, and of models that tell labels of texts or of tokens");
    }
    if (const Node* base = get("base_model_name_or_path")) {
      must("base_model_name_or_path", base->is_string(), "a text");
    }
    if (const Node* r = get("r")) {
      must("r", r->is_integer() && r->as_integer() >= 1 && r->as_integer() <= kRankMax, "between 1 and 65536");
    }
    if (const Node* alpha = get("lora_alpha")) {
      must("lora_alpha", alpha->is_number() && alpha->as_double() >= 0 && alpha->as_double() <= kNumberMax,
           "a number from 0 to 1e30");
    }
    if (const Node* dropout = get("lora_dropout")) {
      must("lora_dropout", dropout->is_number() && dropout->as_double() >= 0 && dropout->as_double() < 1,
           "a number from 0 to below 1");
    }
    for (const char* name : {"use_rslora", "use_dora"}) {
      if (const Node* is_used = get(name)) must(name, is_used->is_bool(), "true or false");
    }
    if (const Node* bias = get("bias")) {
      must("bias", is_one_of(*bias, {"none", "all", "lora_only"}), "none, all or lora_only");
    }
    check_choice();
  }

  static bool is_one_of(const Node& value, std::initializer_list<const char*> words) {
    return value.is_string() && std::find(words.begin(), words.end(), value.as_string()) != words.end();
  }

  /// Which layers, and how A and B began.
  void check_choice() {
    for (const char* name : {"target_modules", "exclude_modules"}) {
      if (const Node* names = get(name)) {
        must(name, names->is_string() || is_text_list(*names) || is_empty(*names), "a text or a list of texts");
      }
    }
    if (const Node* modules = get("modules_to_save")) {
      must("modules_to_save", is_text_list(*modules) || is_empty(*modules), "a list of texts");
    }
    if (const Node* blocks = get("layers_to_transform")) {
      const auto is_number = [](const Node& value) { return value.is_integer() && value.as_integer() >= 0; };
      const bool list = blocks->is_sequence() && std::all_of(blocks->items().begin(), blocks->items().end(), is_number);
      must("layers_to_transform", list || is_number(*blocks), "a number of a block or a list of them");
    }
    if (const Node* init = get("init_lora_weights")) {
      must("init_lora_weights", init->is_bool() || is_one_of(*init, {"gaussian"}), "true, false or gaussian",
           "other ways to begin change the weights of the base: save it as an ordinary LoRA, by PEFT's "
           "save_pretrained(path_initial_model_for_weight_conversion=...)");
    }
  }

  Node completed() const {
    Node found = Node::mapping(config_.location());
    for (const Field& field : kFields) {
      if (field.use != Field::Use::kRead) continue;
      if (const Node* value = get(field.name)) {
        found.set(field.name, *value, value->location());
      } else {
        Node value_of_peft = core::parse_json(field.value).value();
        value_of_peft.set_location(config_.location());
        found.set(field.name, std::move(value_of_peft), config_.location());
      }
    }
    return found;
  }

  const Node& config_;
  Diagnostics& diagnostics_;
};

bool is_model_folder(const fs::path& path) { return !config_of_folder(path.string()).empty(); }

}  // namespace

std::string adapter_config_of_folder(const std::string& path) {
  std::error_code failed;
  std::string file = (fs::path(path) / kAdapterConfigFile).string();
  return fs::is_directory(path, failed) && fs::is_regular_file(file, failed) ? file : "";
}

std::optional<Node> read_adapter_config(const std::string& folder, Diagnostics& diagnostics) {
  if (adapter_config_of_folder(folder).empty()) {
    diagnostics.error({}, "no " + std::string(kAdapterConfigFile) + " in the folder " + folder,
                      "name a folder that PEFT or `roux export` wrote");
    return std::nullopt;
  }
  auto source = std::make_shared<core::Source>();
  source->name = (fs::path(folder) / kAdapterConfigFile).string();
  const core::Result<std::string> text = core::read_file(source->name, kConfigBytesMax);
  if (!text) {
    diagnostics.error({source, 0, 0}, text.failure().message, text.failure().hint);
    return std::nullopt;
  }
  source->text = text.value();
  const std::optional<Node> config = recipe::read_json(source, {.file_bytes_max = kConfigBytesMax}, diagnostics);
  return config && !diagnostics.has_errors() ? check_adapter_config(*config, diagnostics) : std::nullopt;
}

std::optional<Node> check_adapter_config(const Node& config, Diagnostics& diagnostics) {
  return Checker(config, diagnostics).check();
}

double adapter_scale(const Node& config) {
  const auto r = static_cast<double>(config.find("r")->as_integer());
  const Node* rooted = config.find("use_rslora");
  return config.find("lora_alpha")->as_double() / (rooted != nullptr && rooted->as_bool() ? std::sqrt(r) : r);
}

std::string adapter_config_text(const Node& config) {
  Node sorted = Node::mapping();
  for (const Field& field : kFields) {
    if (*field.value == '\0') continue;
    const Node* value = config.find(field.name);
    sorted.set(field.name, value != nullptr ? *value : core::parse_json(field.value).value());
  }
  sorted.set("peft_version", Node::string(kPeftVersion));
  return core::to_json(sorted) + "\n";
}

core::Result<std::string> base_of_adapter(const std::string& folder, const Node& config) {
  const Node* written = config.find("base_model_name_or_path");
  if (written == nullptr || !written->is_string() || written->as_string().empty()) {
    return core::Failure{
        "base_model_name_or_path of " + (fs::path(folder) / kAdapterConfigFile).string() + " names no base model",
        "name the folder of the model that the adapter was trained for", core::kExitUsage};
  }
  const fs::path named(written->as_string());
  if (is_model_folder(named)) return named.string();
  if (named.is_relative() && is_model_folder(fs::path(folder) / named)) return (fs::path(folder) / named).string();
  return core::Failure{"the base model of " + folder + " is " + core::quote(written->as_string()) +
                           " (base_model_name_or_path), and there is no such folder with a " + kConfigFile,
                       "name the folder of that model", core::kExitUsage};
}

}  // namespace runner::pretrained

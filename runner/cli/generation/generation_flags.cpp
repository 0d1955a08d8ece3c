#include "runner/cli/generation/generation_flags.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "runner/cli/flags.h"
#include "runner/cli/prediction/adapter_flag.h"
#include "runner/core/error.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
#include "runner/registry/registry.h"

namespace runner::cli {
namespace {

using registry::Property;

constexpr const char* kSection = "generation.";
constexpr const char* kStop = "stop_strings";
constexpr const char* kSample = "do_sample";

/// Words of Transformers and others that the schema refuses, each with a remedy.
constexpr const char* kRefused[] = {
    "beams",          "num_beam_groups", "diversity_penalty", "constraints", "penalty_alpha", "typical_p",  "top_h",
    "epsilon_cutoff", "eta_cutoff",      "guidance_scale",    "max_length",  "max_tokens",    "min_length", "max_time"};

const registry::Fragment& schema(const char* section) {
  const registry::Fragment* fragment = registry::Registry::builtin().find("section", section);
  RUNNER_ASSERT(fragment != nullptr, "the schemas of all sections are built in");
  return *fragment;
}

/// The first sentence, as a line of help.
std::string help_of(const Property& property) {
  std::string text = property.description.substr(0, property.description.find(". "));
  if (text.ends_with('.')) text.pop_back();
  std::erase(text, '`');
  return text;
}

std::string dashed(std::string key) {
  std::replace(key.begin(), key.end(), '_', '-');
  return key;
}

/// `--top-k,--top_k`
std::string names_of(const std::string& key) { return "--" + dashed(key) + (dashed(key) == key ? "" : ",--" + key); }

/// The key that an option of add_generation_flags() sets; "" for another option.
std::string key_of(const Option& option) {
  for (const std::string& name : option.long_names()) {
    std::string key = name;
    std::replace(key.begin(), key.end(), '-', '_');
    const bool is_refused = std::find(std::begin(kRefused), std::end(kRefused), key) != std::end(kRefused);
    if (is_refused || schema("generation").find(key) != nullptr) return kSection + key;
    if (key == "precision") return "precision.mode";
    if (key == "device") return key;
  }
  return "";
}

std::optional<recipe::Override> change_of(const Option& option) {
  const std::string key = key_of(option);
  if (key.empty()) return std::nullopt;
  const std::vector<std::string> values = option.values();
  const std::string name = "--" + option.long_names().front();
  const std::string last = values.empty() ? "" : values.back();
  if (key == std::string(kSection) + kSample) return recipe::Override{{}, key + "=true", name};
  if (key == std::string(kSection) + kStop) {
    return recipe::Override{{}, key + "=[" + core::joined(values, ", ", recipe_text) + "]", name + " " + last};
  }
  const bool is_list = key.ends_with("eos_token_id") && !last.starts_with('[');
  return recipe::Override{{}, key + "=" + (is_list ? "[" + last + "]" : last), name + " " + last};
}

std::string metavar(const Property& property) {
  switch (property.type) {
    case Property::Type::kInteger: return "N";
    case Property::Type::kNumber: return "X";
    case Property::Type::kString: return "WORD";
    default: return "ID,...";
  }
}

}  // namespace

void add_generation_flags(Command command, GenerationFlags& flags, RecipeFlags& recipe, const std::string& without) {
  for (const Property& property : schema("generation").properties) {
    if (property.name == without) continue;
    const std::string names = names_of(property.name);
    if (property.name == kSample) {
      command.add_flag(names, flags.do_sample, help_of(property));
    } else if (property.name == kStop) {
      command
          .add_option("--stop,--stop-strings," + names.substr(names.find(',') + 1), flags.stops,
                      "End a text as soon as it contains this; may be repeated")
          .type_name("TEXT")
          .allow_extra_args(false);
    } else {
      command.add_option(names, flags.values[property.name], help_of(property))
          .type_name(metavar(property))
          .take_last();
    }
  }
  const Property* mode = schema("precision").find("mode");
  RUNNER_ASSERT(mode != nullptr, "the schema has precision.mode");
  Option precision = command.add_option("--precision", flags.values["precision"], "Precision of the computation");
  offer(precision.type_name("MODE").take_last(), mode->enum_values);
  Option device = command.add_option("--device", flags.values["device"], "Device to compute on");
  offer(device.type_name("DEVICE").take_last(), {"auto", "cpu", "cuda"});
  for (const char* word : kRefused) {
    command.add_option(names_of(word), flags.values[word], "").group("").take_last();
  }
  recipe.change_of = change_of;
}

void add_weight_flags(Command command, engine::GenerateRequest& request) {
  command
      .add_option("--checkpoint", request.checkpoint,
                  "Checkpoint: last (default), best, step-000500, a folder; or weights: a Transformers folder, a file")
      .type_name("CHECKPOINT");
  command
      .add_option("--run", request.run,
                  "Run whose checkpoints to use: id or a prefix of it, name, folder, or `last`; the newest of the "
                  "recipe by default")
      .type_name("RUN");
  add_adapter_flag(command, request.adapters);
}

void add_chat_format_flag(Command command, engine::GenerateRequest& request, const std::string& when) {
  command
      .add_option(
          "--chat-format", request.chat_format,
          when + (when.empty() ? "Format" : "a format") +
              " by name, such as chatml, or the file of a template; by default the template beside the tokenizer")
      .type_name("NAME");
}

}  // namespace runner::cli

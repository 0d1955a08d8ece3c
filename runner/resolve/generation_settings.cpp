#include "runner/resolve/generation_settings.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "runner/core/platform/files.h"
#include "runner/pretrained/config.h"
#include "runner/recipe/read.h"

namespace runner::resolve {
namespace {

namespace fs = std::filesystem;

using core::Diagnostics;
using core::Node;

constexpr const char* kFile = "generation_config.json";
constexpr const char* kEndTokens = "eos_token_id";
constexpr std::int64_t kBytesMax = 1 << 20;

constexpr const char* kKnown[] = {"max_new_tokens",
                                  "do_sample",
                                  "temperature",
                                  "top_k",
                                  "top_p",
                                  "min_p",
                                  "repetition_penalty",
                                  "no_repeat_ngram_size",
                                  "min_new_tokens",
                                  "num_beams",
                                  "length_penalty",
                                  "early_stopping",
                                  "stop_strings",
                                  "num_return_sequences",
                                  kEndTokens};

/// A setting that roux does not have, and the number with which it changes nothing.
struct Unknown {
  const char* name;
  std::optional<double> neutral;
};
constexpr Unknown kUnknown[] = {{"num_beam_groups", 1},
                                {"penalty_alpha", 0},
                                {"constraints", {}},
                                {"force_words_ids", {}},
                                {"diversity_penalty", 0},
                                {"encoder_no_repeat_ngram_size", 0},
                                {"encoder_repetition_penalty", 1},
                                {"typical_p", 1},
                                {"top_h", {}},
                                {"epsilon_cutoff", 0},
                                {"eta_cutoff", 0},
                                {"bad_words_ids", {}},
                                {"suppress_tokens", {}},
                                {"begin_suppress_tokens", {}},
                                {"sequence_bias", {}},
                                {"forced_bos_token_id", {}},
                                {"forced_eos_token_id", {}},
                                {"exponential_decay_length_penalty", {}},
                                {"guidance_scale", 1},
                                {"watermarking_config", {}},
                                {"dola_layers", {}},
                                {"token_healing", {}},
                                {"min_length", 0}};

/// Whether a value of such a setting would change a text.
bool acts(const Node& value, const std::optional<double>& neutral) {
  if (value.is_null() || (value.is_bool() && !value.as_bool())) return false;
  if (value.is_sequence()) return !value.items().empty();
  if (value.is_mapping()) return !value.entries().empty();
  return !(neutral && value.is_number() && value.as_double() == *neutral);
}

/// The object in a JSON file; nothing when there is no such file, or `diagnostics` got an error.
std::optional<Node> read_object(const fs::path& path, Diagnostics& diagnostics) {
  std::error_code failed;
  if (!fs::is_regular_file(path, failed)) return std::nullopt;
  auto source = std::make_shared<core::Source>();
  source->name = path.string();
  const core::Result<std::string> text = core::read_file(path.string(), kBytesMax);
  if (!text) {
    diagnostics.error({source, 0, 0}, text.failure().message, text.failure().hint);
    return std::nullopt;
  }
  source->text = text.value();
  std::optional<Node> object = recipe::read_json(source, {.file_bytes_max = kBytesMax}, diagnostics);
  if (object && !object->is_mapping()) {
    diagnostics.error(object->location(), "a generation configuration is an object");
    return std::nullopt;
  }
  return object;
}

void fill(Node& section, const Node& file, const char* key) {
  const Node *given = section.find(key), *value = file.find(key);
  if (given != nullptr || value == nullptr || value->is_null()) return;
  Node filled = *value;
  filled.add_history({"init_from", core::Origin::kSettled});
  section.set(key, std::move(filled), value->location());
}

void warn_of_unknown(const Node& file, Diagnostics& diagnostics) {
  for (const Unknown& unknown : kUnknown) {
    const Node* value = file.find(unknown.name);
    if (value == nullptr || !acts(*value, unknown.neutral)) continue;
    diagnostics.warning(value->location(), std::string(unknown.name) + " is not applied: roux does not have it",
                        "texts may differ from those of Transformers");
  }
}

}  // namespace

std::vector<std::string> settings_without_effect() {
  std::vector<std::string> names;
  for (const Unknown& unknown : kUnknown) names.emplace_back(unknown.name);
  return names;
}

void complete_generation(Node* generation, const Node* source, Diagnostics& diagnostics) {
  if (generation == nullptr || !generation->is_mapping() || source == nullptr) return;
  const std::string config = pretrained::config_of_folder(source->as_string());
  if (config.empty()) return;
  const fs::path path = fs::path(source->as_string()) / kFile;
  std::error_code failed;
  if (!fs::exists(path, failed)) {
    Diagnostics told_where_the_model_is_read;
    const auto model = read_object(config, told_where_the_model_is_read);
    if (model) fill(*generation, *model, kEndTokens);
    return;
  }
  const auto file = read_object(path, diagnostics);
  if (!file) return;
  for (const char* key : kKnown) fill(*generation, *file, key);
  warn_of_unknown(*file, diagnostics);
}

}  // namespace runner::resolve

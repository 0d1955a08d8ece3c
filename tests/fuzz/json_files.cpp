#include "tests/fuzz/json_files.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string_view>

#include "runner/artifact/tensor_set.h"
#include "runner/core/diagnostics.h"
#include "runner/core/json.h"
#include "runner/core/platform/files.h"
#include "runner/pretrained/adapter_config.h"
#include "runner/pretrained/adapter_file.h"
#include "runner/pretrained/config.h"
#include "runner/pretrained/differences.h"
#include "runner/recipe/read.h"
#include "runner/resolve/generation_settings.h"

namespace tests {
namespace {

using runner::core::Node;

constexpr std::size_t kTextMax = 1 << 16;
constexpr std::string_view kValues[] = {"null",
                                        "true",
                                        "false",
                                        "0",
                                        "1",
                                        "2",
                                        "3",
                                        "-1",
                                        "4.5",
                                        "1e-6",
                                        "1e30",
                                        "1e300",
                                        "1e999",
                                        "10000",
                                        "2147483647",
                                        "9223372036854775807",
                                        "-9223372036854775808",
                                        "18446744073709551616",
                                        "\"\"",
                                        "\"silu\"",
                                        "\"relu\"",
                                        "\"gpt2\"",
                                        "\"llama\"",
                                        "\"mistral\"",
                                        "\"qwen2\"",
                                        "\"../x.safetensors\"",
                                        "\"a/b.safetensors\"",
                                        "\".safetensors\"",
                                        "\"model-00001-of-00002.safetensors\"",
                                        "\"\\u0000\"",
                                        "\"\\u001b[2J\"",
                                        "[]",
                                        "[\"full_attention\", \"sliding_attention\"]",
                                        "[\"sliding_attention\"]",
                                        "[[[[]]]]",
                                        "{}",
                                        R"({"rope_type": "default"})",
                                        R"({"rope_type": "linear", "factor": 2.0})",
                                        R"({"type": "dynamic", "factor": 4})",
                                        R"({"rope_type": "yarn", "factor": 4.0, "truncate": false})",
                                        R"({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0})",
                                        R"({"rope_theta": null, "factor": -1})"};
constexpr std::string_view kFields[] = {"model_type",
                                        "hidden_size",
                                        "num_attention_heads",
                                        "num_key_value_heads",
                                        "head_dim",
                                        "vocab_size",
                                        "rope_scaling",
                                        "rope_parameters",
                                        "rope_theta",
                                        "layer_types",
                                        "sliding_window",
                                        "use_sliding_window",
                                        "max_window_layers",
                                        "n_embd",
                                        "n_head",
                                        "weight_map",
                                        "sha",
                                        "siblings",
                                        "rfilename",
                                        "pad_token_id",
                                        "peft_type",
                                        "r",
                                        "lora_alpha",
                                        "target_modules",
                                        "rank_pattern",
                                        "base_model.model.q_proj.lora_A.weight",
                                        "base_model.model.h.0.base_layer.bias",
                                        "base_model.model..lora_B.weight",
                                        "_",
                                        "wings"};

/// Values of `node`, its own and those within.
void collect(Node& node, std::vector<Node*>& all) {
  all.push_back(&node);
  if (node.is_mapping()) {
    for (Node::Entry& entry : node.entries()) collect(entry.value, all);
  } else if (node.is_sequence()) {
    for (Node& item : node.items()) collect(item, all);
  }
}

}  // namespace

void JsonFiles::change_fields(std::string& text) {
  runner::core::Result<Node> read = runner::core::parse_json(text);
  if (!read) return;
  std::vector<Node*> all;
  collect(read.value(), all);
  const auto value = runner::core::parse_json(kValues[below(std::size(kValues))]);
  Node& at = *all[below(all.size())];
  if (!at.is_mapping() || below(4) == 0) {
    if (value) at = value.value();
  } else if (const std::size_t count = at.entries().size(); below(3) == 0 && count > 0) {
    at.erase(std::string(at.entries()[below(count)].key));
  } else if (value) {
    const bool own = below(2) == 0 && count > 0;
    at.set(own ? std::string(at.entries()[below(count)].key) : std::string(kFields[below(std::size(kFields))]),
           value.value());
  }
  text = runner::core::to_json(read.value(), -1);
}

void JsonFiles::damage(std::string& text) {
  const std::size_t at = below(text.size() + 1);
  const std::size_t length = std::min(1 + below(24), text.size() - at);
  switch (below(6)) {
    case 0:
      if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
      break;
    case 1: text.erase(at, length); break;
    case 2: text.insert(at, kValues[below(std::size(kValues))]); break;
    case 3: text.resize(at); break;
    case 4: {
      const std::string& other = corpus_[below(corpus_.size())];
      text.insert(at, other, below(other.size()), length);
      break;
    }
    default: {
      const std::string part = text.substr(at, length);
      std::string many;
      for (std::size_t i = below(300); i > 0; --i) many += part;
      text.insert(at, many);
    }
  }
}

std::string JsonFiles::next() {
  std::string text = corpus_[below(corpus_.size())];
  for (std::size_t rounds = 1 + below(5); rounds > 0; --rounds) change_fields(text);
  if (below(3) == 0) damage(text);
  if (text.size() > kTextMax) text.resize(kTextMax);
  return text;
}

namespace {

std::string& generation_folder() {
  static std::string folder;
  return folder;
}

}  // namespace

void read_config_text(const std::string& text) {
  using namespace runner;
  core::Diagnostics diagnostics;
  const auto source =
      std::make_shared<const core::Source>(core::Source{"config.json", text, core::Source::Kind::kFile});
  const auto read = recipe::read_json(source, {}, diagnostics);
  const auto config = read && !diagnostics.has_errors() ? pretrained::check_config(*read, diagnostics) : std::nullopt;
  if (!config) {
    if (!diagnostics.has_errors()) std::abort();  // no result and no error
    diagnostics.sort();
    core::render(diagnostics);
    return;
  }
  const auto again = pretrained::check_config(*config, diagnostics);
  if (!again || core::to_json(*again) != core::to_json(*config)) std::abort();
  if (!pretrained::differences(*config, *again).empty()) std::abort();
}

void remove_generation_folder() {
  std::error_code ignored;
  if (!generation_folder().empty()) std::filesystem::remove_all(generation_folder(), ignored);
}

void read_generation_text(const std::string& text) {
  using namespace runner;
  std::string& folder = generation_folder();
  if (folder.empty()) {
    folder = (std::filesystem::temp_directory_path() / "roux-fuzz-XXXXXX").string();
    if (::mkdtemp(folder.data()) == nullptr) std::abort();
    core::write_file_atomic(folder + "/config.json", "{\"model_type\": \"gpt2\"}").value();
  }
  core::write_file_atomic(folder + "/generation_config.json", text).value();
  core::Diagnostics diagnostics;
  const Node source_folder = Node::string(folder);
  Node generation = Node::mapping();
  resolve::complete_generation(&generation, &source_folder, diagnostics);
  diagnostics.sort();
  core::render(diagnostics);
  const auto source = std::make_shared<const core::Source>(core::Source{"again", text, core::Source::Kind::kFile});
  const auto whole = recipe::read_json(source, {}, diagnostics);
  for (const Node::Entry& setting : generation.entries()) {
    const Node* written = whole && whole->is_mapping() ? whole->find(setting.key) : nullptr;
    if (written == nullptr || !written->same_value(setting.value)) std::abort();
  }
}

void read_adapter_text(const std::string& text) {
  using namespace runner;
  core::Diagnostics diagnostics;
  const auto source =
      std::make_shared<const core::Source>(core::Source{"adapter_config.json", text, core::Source::Kind::kFile});
  const auto read = recipe::read_json(source, {}, diagnostics);
  if (read && read->is_mapping()) {
    for (const Node::Entry& entry : read->entries()) {
      const auto name = pretrained::parse_adapter_name(entry.key);
      if (!name) continue;
      const std::string bare = pretrained::adapter_name(name->module, name->part, false);
      if (bare != entry.key && pretrained::adapter_name(name->module, name->part, true) != entry.key) std::abort();
    }
  }
  const auto config =
      read && !diagnostics.has_errors() ? pretrained::check_adapter_config(*read, diagnostics) : std::nullopt;
  if (!config) {
    if (!diagnostics.has_errors()) std::abort();  // no result and no error
    diagnostics.sort();
    core::render(diagnostics);
    return;
  }
  if (!(pretrained::adapter_scale(*config) >= 0)) std::abort();
  const auto again = pretrained::check_adapter_config(*config, diagnostics);
  if (!again || core::to_json(*again) != core::to_json(*config)) std::abort();
  const auto written = core::parse_json(pretrained::adapter_config_text(*config));
  if (!written || !pretrained::check_adapter_config(written.value(), diagnostics)) std::abort();
}

void read_index_text(const std::string& text) {
  const int file = ::memfd_create("index", 0);
  if (file < 0 || ::write(file, text.data(), text.size()) != static_cast<ssize_t>(text.size())) std::abort();
  const auto shards = runner::artifact::shards_of("/proc/self/fd/" + std::to_string(file));
  ::close(file);
  for (const std::string& shard : shards.value_or({})) {
    if (shard.empty() || shard == "." || shard == ".." || shard.find('/') != std::string::npos) std::abort();
  }
}

}  // namespace tests

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runner/cli/flags.h"
#include "runner/cli/group/config.h"
#include "runner/cli/group/import/axolotl_import.h"
#include "runner/cli/group/import/import_parts.h"
#include "runner/cli/group/import/launch/accelerate_import.h"
#include "runner/cli/group/import/launch/command_line.h"
#include "runner/cli/group/import/launch/foreign_file.h"
#include "runner/cli/group/import/launch/launcher.h"
#include "runner/cli/group/import/trainer_import.h"
#include "runner/cli/launch_config.h"
#include "runner/core/error.h"
#include "runner/core/platform/files.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
#include "runner/recipe/read.h"
#include "runner/registry/registry.h"
#include "runner/resolve/recipe.h"
#include "runner/resolve/sharding/settings.h"
#include "runner/words/reader.h"
#include "runner/words/table.h"

namespace runner::cli {
namespace {

using core::Node;

constexpr std::size_t kTableColumns = 120;

/// Whether what reads as a mapping could be a command line with a colon in it: no tool has a key with a blank.
bool could_be_command(const Node& config) {
  return std::any_of(config.entries().begin(), config.entries().end(),
                     [](const Node::Entry& entry) { return entry.key.find(' ') != std::string::npos; });
}

void refuse_unknown(const core::Location& at, core::Diagnostics& diagnostics) {
  diagnostics.error(
      at,
      "not a config file of Accelerate, Axolotl, DeepSpeed, LLaMA-Factory or the Trainer, nor the command line of a "
      "script",
      "a config file is a mapping; a command line begins with the program, or with its first --argument");
}

/// Whether one of its keys is of Accelerate's file.
bool is_accelerate(const Node& config) {
  return std::any_of(config.entries().begin(), config.entries().end(), [](const Node::Entry& entry) {
    return words::find(words::table_of("accelerate").words, entry.key) != nullptr;
  });
}

/// A file of YAML or JSON, or a command line. Nothing when `diagnostics` got errors.
std::optional<Node> read_config(const std::shared_ptr<const core::Source>& source, core::Diagnostics& diagnostics) {
  core::Diagnostics found;
  auto config = read_foreign(source, found);
  const bool is_mapping = config && config->is_mapping();
  if (is_mapping && !could_be_command(*config)) return config;
  if (auto arguments = read_command_line(source, diagnostics)) {
    return diagnostics.has_errors() ? std::nullopt : std::move(arguments);
  }
  if (diagnostics.has_errors()) return std::nullopt;
  if (is_mapping) return config;
  diagnostics.add_all(found);
  core::Location location;
  location.source = source;
  if (!found.has_errors()) refuse_unknown(location, diagnostics);
  return std::nullopt;
}

/// Whether a file is DeepSpeed's own JSON: `zero_optimization`, its sizes of a batch or its blocks at the top.
bool is_deepspeed(const Node& config) {
  const auto has = [&](const char* key) { return config.find(key) != nullptr; };
  const auto has_block = [&](const char* key) { return has(key) && config.find(key)->is_mapping(); };
  const bool is_own = has("zero_optimization") || has("train_micro_batch_size_per_gpu") || has("train_batch_size") ||
                      has_block("bf16") || has_block("fp16") || has_block("optimizer") || has_block("scheduler");
  return is_own && !has("distributed_type") && !has("compute_environment");
}

/// What it comes to; `auto` is left to the recipe that extends it, and what is not there is left out, with a warning.
Node recipe_of_deepspeed(const Node& config, core::Diagnostics& diagnostics) {
  std::vector<resolve::ShardingWord> words;
  for (const Node::Entry& entry : config.entries())
    words.push_back({entry.key, entry.key, entry.key_location, entry.value, entry.key, entry.key_location});
  Node recipe = Node::mapping();
  const resolve::ShardingOptions options{.missing = core::Severity::kWarning, .tells = false};
  resolve::apply_deepspeed(words, recipe, options, registry::Registry::builtin(), diagnostics);
  return recipe;
}

/// What a command line says of processes and sharding. The rest of a script that is not the Trainer's is left out, with
/// a warning.
Node recipe_of_script(const Node& config, core::Diagnostics& diagnostics) {
  Node recipe = Node::mapping();
  std::vector<words::Row> rows;  // of the Trainer's scripts
  take_sharding(config, recipe, rows, diagnostics);
  if (const Node* launcher = config.find(kLauncher)) {
    take_launcher(*launcher, /*is_trainer=*/false, recipe, rows, diagnostics);
  }
  std::vector<std::string> others;
  for (const Node::Entry& entry : config.entries()) {
    const bool is_taken = entry.key == kScript || entry.key == kLauncher || entry.key == "local_rank" ||
                          entry.key == "deepspeed" || entry.key == "fsdp" || entry.key == "fsdp_config";
    if (!is_taken) others.push_back("--" + entry.key);
  }
  const Node& script = *config.find(kScript);
  if (!others.empty()) {
    diagnostics.warning(script.location(),
                        core::joined_first(others, 6) + " of " + core::escape_for_terminal(script.scalar_text()) +
                            (others.size() == 1 ? " is" : " are") + " left out: the script does not use the Trainer",
                        "write what they set into the recipe: model, data, optimizer, training");
  }
  return recipe;
}

/// What a configuration of another program comes to. `rows`: what became of its keys.
Node recipe_of(const Node& config, std::vector<words::Row>& rows, core::Diagnostics& diagnostics) {
  if (is_axolotl(config)) return recipe_of_axolotl(config, rows, diagnostics);
  if (is_trainer(config)) return recipe_of_trainer(config, rows, diagnostics);
  if (config.find(kScript) != nullptr) return recipe_of_script(config, diagnostics);
  if (is_deepspeed(config)) return recipe_of_deepspeed(config, diagnostics);
  if (!config.entries().empty() && !is_accelerate(config)) {
    refuse_unknown(config.location(), diagnostics);
    return Node::mapping();
  }
  Node sections = recipe_of_accelerate(config, rows, diagnostics);
  refuse_empty_numbers(config, words::table_of("accelerate"), sections, rows, diagnostics);
  return sections;
}

void import(Session& session, const std::string& file, const std::string& output) {
  core::Diagnostics diagnostics;
  const recipe::Limits limits;
  auto text = core::read_file(file, limits.file_bytes_max);
  if (!text) return session.fail(text.failure().message, text.failure().hint);
  if (core::trimmed(text.value()).empty()) return session.fail(file + " is empty", "name the file of another program");
  const auto source =
      std::make_shared<const core::Source>(core::Source{file, std::move(text).value(), core::Source::Kind::kFile});
  std::string sections, use = "use it in a recipe with extends: [this file]";
  const auto config = read_config(source, diagnostics);
  std::vector<words::Row> rows;
  if (config) {
    const Node recipe = recipe_of(*config, rows, diagnostics);
    const bool is_whole = recipe.find("init_from") != nullptr;
    if (is_whole) use = "check it with `roux plan`";
    if (!is_whole || !diagnostics.has_errors()) check_sections(recipe, diagnostics);
    for (const Node::Entry& section : recipe.entries()) sections += section_text(section.key, section.value);
    const Node* script = config->find(kScript);
    if (script != nullptr && sections.empty() && !diagnostics.has_errors()) {
      diagnostics.error(script->location(),
                        "what " + core::escape_for_terminal(script->scalar_text()) +
                            " trains is not known, and nothing of its command belongs into a recipe",
                        "`roux new MODEL FILE` writes a recipe");
    }
  }
  words::refuse_where_wrong(rows, diagnostics);
  diagnostics.sort();
  session.show(diagnostics);
  if (!rows.empty() && !session.quiet) std::fputs(words::table_text(rows, kTableColumns).c_str(), stderr);
  if (diagnostics.has_errors()) return void(session.exit_code = core::kExitUsage);
  if (output.empty()) return void(std::fputs(sections.c_str(), stdout));
  if (sections.empty()) sections = "{}\n";  // a recipe that extends a file without a value would be refused
  write_config(session, output, "# From " + file + "; " + use + "\n" + sections);
}

}  // namespace

void add_config_import(Command group, Session& session) {
  struct Files {
    std::string from, to;
  };
  auto files = std::make_shared<Files>();
  Command command = group.add_subcommand("import",
                                         "Convert a config file of Accelerate or DeepSpeed to sections of a recipe; of "
                                         "Axolotl, LLaMA-Factory or the Trainer to a recipe");
  command
      .add_option("FILE", files->from,
                  "File that `accelerate config` wrote, of DeepSpeed, Axolotl or LLaMA-Factory, or with arguments of "
                  "Transformers' Trainer: YAML, JSON, or the command line of a script")
      .required();
  add_output(command, files->to, "File to write; standard output by default");
  command.footer(
      "\nExamples:\n  roux config import ~/.cache/huggingface/accelerate/default_config.yaml -o machines.yaml\n"
      "  roux config import lora.yml -o recipe.yaml\n"
      "  roux config import run_clm.sh -o recipe.yaml        torchrun run_clm.py --model_name_or_path gpt2 ...");
  command.callback(
      [&session, files] { session.command = [&session, files] { import(session, files->from, files->to); }; });
}

}  // namespace runner::cli

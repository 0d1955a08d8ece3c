#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>

#include "runner/cli/accelerate_import.h"
#include "runner/cli/any_recipe.h"
#include "runner/cli/commands.h"
#include "runner/cli/launch_config.h"
#include "runner/core/platform/files.h"
#include "runner/recipe/read.h"
#include "runner/registry/registry.h"
#include "runner/registry/validate.h"

namespace runner::cli {
namespace {

using core::Node;

bool write(Session& session, const std::string& path, const std::string& text) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  for (const auto& result :
       {folder.empty() ? core::Result<void>() : core::make_folders(folder), core::write_file_atomic(path, text)}) {
    if (result) continue;
    session.fail(result.failure().message, result.failure().hint, core::kExitFailed);
    return false;
  }
  std::printf("wrote %s\n", path.c_str());
  return true;
}

/// Failing where the user has said that there is no such file.
std::optional<std::string> path_to_write(Session& session) {
  const std::string path = config_path();
  if (!path.empty()) return path;
  session.fail("ROUX_CONFIG_FILE is empty: there is no file of this machine", "unset it, or let it name a file");
  return std::nullopt;
}

/// The same for a new file, which replaces none unless `force`.
std::optional<std::string> path_of_new(Session& session, bool force) {
  const auto path = path_to_write(session);
  std::error_code error;
  if (!path || force || !std::filesystem::exists(*path, error)) return path;
  session.fail(*path + " is there already", "`roux config update` keeps what it says, --force does not");
  return std::nullopt;
}

void write_default(Session& session, bool force) {
  const auto path = path_of_new(session, force);
  if (!path) return;
  write(session, *path, launch_config_text(Node::mapping()));
}

/// Keeps what there is, and shows the keys that have come since.
void update(Session& session) {
  const auto path = path_to_write(session);
  if (!path) return;
  const auto launch = read_launch_config(*path);
  if (!launch) return session.fail(launch.failure().message, launch.failure().hint);
  const registry::Fragment* schema = registry::Registry::builtin().find("section", "launch");
  Node kept = Node::mapping();
  for (const Node::Entry& entry : launch.value().entries()) {
    if (schema->find(entry.key) != nullptr) {
      kept.set(entry.key, entry.value);
    } else {
      std::fprintf(stderr, "left out: there is no launch.%s\n", entry.key.c_str());
    }
  }
  write(session, *path, launch_config_text(kept));
}

/// What the sections say has to be what a recipe may say; told at the place that it comes from.
void check_sections(const Node& sections, core::Diagnostics& diagnostics) {
  const auto any = std::make_shared<const core::Source>(core::Source{"no recipe", kAnyRecipe});
  Node whole = recipe::read_yaml(any, {}, diagnostics).value_or(Node::mapping());
  for (const Node::Entry& section : sections.entries()) {
    if (!section.value.is_mapping() || whole.find(section.key) == nullptr) {
      whole.set(section.key, section.value);
      continue;
    }
    for (const Node::Entry& key : section.value.entries()) whole.find(section.key)->set(key.key, key.value);
  }
  registry::validate_recipe(whole, registry::Registry::builtin(), diagnostics);
}

/// The answer to a question, read as a value of a recipe; nothing where it is left empty.
std::optional<Node> ask(const std::string& question) {
  std::printf("%s: ", question.c_str());
  std::fflush(stdout);
  std::string answer;
  if (!std::getline(std::cin, answer) || answer.empty()) return std::nullopt;
  core::Diagnostics diagnostics;
  const auto source =
      std::make_shared<const core::Source>(core::Source{"the answer", answer, core::Source::Kind::kFlag});
  return recipe::read_value(source, answer, diagnostics);
}

void ask_all(Session& session, bool force) {
  const auto path = path_of_new(session, force);
  if (!path) return;
  Node launch = Node::mapping();
  const auto take = [&](const char* key, const std::string& question) {
    const auto answer = ask(question);
    if (answer) launch.set(key, *answer);
    return answer.has_value() && answer->is_integer() ? answer->as_integer() : 1;
  };
  std::printf("An empty answer leaves the default.\n");
  if (take("num_machines", "how many machines train together [1]") > 1) {
    take("machine_rank", "which one is this, from 0");
    take("main_process_ip", "address of machine 0");
    take("main_process_port", "port of machine 0 [29500]");
  }
  if (take("num_processes", "how many processes, on all machines together [1]") > 1) {
    take("max_restarts", "how often to start all again after one has failed [0]");
  }
  take("num_cpu_threads_per_process", "threads of each process [the cores, shared out]");
  std::printf("\n");
  Node sections = Node::mapping();
  sections.set("launch", launch);
  core::Diagnostics diagnostics;
  check_sections(sections, diagnostics);
  session.show(diagnostics);
  if (diagnostics.has_errors()) return void(session.exit_code = core::kExitUsage);
  write(session, *path, launch_config_text(launch));
}

void import(Session& session, const std::string& file, const std::string& output) {
  core::Diagnostics diagnostics;
  const recipe::Limits limits;
  auto text = core::read_file(file, limits.file_bytes_max);
  if (!text) return session.fail(text.failure().message, text.failure().hint);
  const auto source =
      std::make_shared<const core::Source>(core::Source{file, std::move(text).value(), core::Source::Kind::kFile});
  const auto config = recipe::read_yaml(source, limits, diagnostics);
  std::string sections;
  if (config && config->is_mapping()) {
    const Node recipe = recipe_of_accelerate(*config, diagnostics);
    check_sections(recipe, diagnostics);
    for (const Node::Entry& section : recipe.entries()) {
      sections += section.key + ":";
      if (!section.value.is_mapping()) {
        sections += " " + core::to_json(section.value, -1) + "\n";
        continue;
      }
      sections += "\n";
      for (const Node::Entry& key : section.value.entries()) {
        sections += "  " + key.key + ": " + core::to_json(key.value, -1) + "\n";
      }
    }
  } else if (config) {
    diagnostics.error(config->location(), "this is no config file of Accelerate: it has to be a mapping");
  }
  session.show(diagnostics);
  if (diagnostics.has_errors()) return void(session.exit_code = core::kExitUsage);
  if (output.empty()) return void(std::fputs(sections.c_str(), stdout));
  write(session, output, "# From " + file + ", to be extended: extends: [this file]\n" + sections);
}

}  // namespace

void add_config(CLI::App& app, Session& session) {
  CLI::App* command = app.add_subcommand("config", "what this machine says about launch where a recipe says nothing");
  command->footer(
      "\nThe file is ROUX_CONFIG_FILE, else ~/.config/roux/launch.yaml. Flags win over the environment "
      "(ROUX_LAUNCH_NUM_PROCESSES=2), that over the recipe, and that over the file.");
  CLI::App* init = command->add_subcommand("init", "ask some questions and write the file");
  auto force = std::make_shared<bool>(false);
  init->add_flag("--force", *force, "replace a file that is there");
  init->callback([&session, force] { session.command = [&session, force] { ask_all(session, *force); }; });

  CLI::App* defaults = command->add_subcommand("default", "write the file with every key in a comment");
  defaults->add_flag("--force", *force, "replace a file that is there");
  defaults->callback([&session, force] { session.command = [&session, force] { write_default(session, *force); }; });

  CLI::App* renew = command->add_subcommand("update", "write the file anew, with what it says and the keys of today");
  renew->callback([&session] { session.command = [&session] { update(session); }; });

  struct Files {
    std::string from, to;
  };
  auto files = std::make_shared<Files>();
  CLI::App* take = command->add_subcommand("import", "the sections of a recipe that a config file of Accelerate means");
  take->add_option("FILE", files->from, "as `accelerate config` wrote it")->required();
  take->add_option("--output,-o", files->to, "write them there, for a recipe to extend")->type_name("RECIPE");
  take->footer(
      "\nExamples:\n  roux config import ~/.cache/huggingface/accelerate/default_config.yaml -o machines.yaml");
  take->callback(
      [&session, files] { session.command = [&session, files] { import(session, files->from, files->to); }; });

  CLI::App* options = command->add_subcommand("options", "what becomes of each option of Accelerate, as a page");
  options->callback([&session] { session.command = [] { std::fputs(accelerate_page().c_str(), stdout); }; });
}

}  // namespace runner::cli

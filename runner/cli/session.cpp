#include "runner/cli/session.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <utility>

#include "runner/cli/launch_config.h"
#include "runner/cli/launch_flags.h"
#include "runner/core/error.h"
#include "runner/core/log.h"
#include "runner/core/reader_output.h"
#include "runner/core/text/utf8.h"
#include "runner/gguf/format.h"
#include "runner/hub/web_file.h"
#include "runner/launch/rank_environment.h"
#include "runner/recipe/interpolate.h"
#include "runner/registry/registry.h"
#include "runner/resolve/changes.h"
#include "runner/resolve/gguf_values.h"
#include "runner/resolve/load.h"
#include "runner/sweep/spec/sweep.h"

namespace runner::cli {
namespace {

constexpr int kDiagnosticsShownMax = 200;  // more than that has one cause, such as a wrong file
constexpr const char* kChanges = "CHANGES";

core::Location location_of_flag(const std::string& text) {
  core::Location location;
  location.source = std::make_shared<core::Source>(core::Source{text, "", core::Source::Kind::kFlag});
  return location;
}

core::LogLevel level_of(core::Severity severity) {
  switch (severity) {
    case core::Severity::kError: return core::LogLevel::kError;
    case core::Severity::kWarning: return core::LogLevel::kWarning;
    case core::Severity::kNotice: return core::LogLevel::kInfo;
  }
  return core::LogLevel::kError;
}

}  // namespace

bool Session::writes_json() const { return log_format == "json" && (!host || host->errors == nullptr); }

void Session::print_error(const std::string& text) const {
  if (host && host->errors != nullptr) {
    *host->errors += text;
  } else {
    core::write_to_reader(STDERR_FILENO, text);
  }
}

void Session::show(const core::Diagnostics& diagnostics) const {
  core::RenderOptions options;
  options.color = color;
  int shown = 0;
  int left_out = 0;
  for (const core::Diagnostic& diagnostic : diagnostics.all()) {
    if (quiet && diagnostic.severity == core::Severity::kNotice) continue;
    if (kept != nullptr) {
      kept->add(diagnostic);
    } else if (shown++ < kDiagnosticsShownMax) {
      print_error(writes_json() ? core::json_log_line(level_of(diagnostic.severity), diagnostic.message,
                                                      diagnostic.location.text(), diagnostic.hint)
                                : core::render(diagnostic, options));
    } else {
      ++left_out;
    }
  }
  if (left_out > 0) {
    const std::string more = "and " + std::to_string(left_out) + " more problems";
    print_error(writes_json() ? core::json_log_line(core::LogLevel::kError, more, "", "") : more + "\n");
  }
}

void Session::fail(const std::string& message, const std::string& hint, int status) {
  print_failure(message, core::escape_for_terminal(message), hint, status);
}

void Session::fail_in_lines(const std::string& message, const std::string& hint, int status) {
  print_failure(message, core::printable(message), hint, status);
}

void Session::print_failure(const std::string& message, const std::string& shown, const std::string& hint, int status) {
  const char* red = color ? "\033[1;31m" : "";
  const char* plain = color ? "\033[0m" : "";
  exit_code = status;
  if (kept != nullptr) return kept->error({}, message, hint);
  if (writes_json()) return print_error(core::json_log_line(core::LogLevel::kError, message, "", hint));
  print_error(std::string(red) + "error:" + plain + " " + shown + "\n" +
              (hint.empty() ? "" : "  hint: " + core::escape_for_terminal(hint) + "\n"));
}

std::string Session::runs_dir() const {
  if (!output_dir.empty()) return output_dir;
  const char* variable = std::getenv("ROUX_OUTPUT_DIR");
  return variable != nullptr && *variable != '\0' ? variable : "runs";
}

bool Session::fetch(const recipe::Composed& open, core::Diagnostics& diagnostics) {
  // The supervisor of this process has fetched it for all ranks.
  if (hub == HubUse::kCache || std::getenv(launch::kSupervised) != nullptr) return true;
  core::Node root = open.root;
  core::Diagnostics told_by_the_validation;
  recipe::interpolate(root, open.recipe_dir, {}, told_by_the_validation);
  exit_code = fetch_of_recipe(std::move(root), hub, quiet || launch::another_process_reports(), diagnostics);
  return exit_code == core::kExitDone;
}

std::optional<std::string> Session::unpacked_path(const std::string& word) {
  std::error_code failed;
  if (!word.ends_with(gguf::kEnding) || !std::filesystem::is_regular_file(word, failed)) return word;
  const auto folder = resolve::unpacked_gguf(word);
  if (folder) return folder.value();
  fail(folder.failure().message, folder.failure().hint, folder.failure().exit_code);
  return std::nullopt;
}

std::optional<std::string> Session::fetched_path(const std::string& word, hub::Part part) {
  if (!hub::is_name(word) && !hub::is_web_file(word)) return unpacked_path(word);
  const auto fetched = fetch_named(word, part, quiet || launch::another_process_reports());
  if (fetched) return fetched.value().path;
  fail(fetched.failure().message, fetched.failure().hint, fetched.failure().exit_code);
  return std::nullopt;
}

std::optional<resolve::Recipe> Session::load(const std::string& path, const recipe::ComposeOptions& options) {
  if (path.empty()) {
    fail("the path of the recipe is empty");
    return std::nullopt;
  }
  core::Diagnostics diagnostics;
  std::optional<resolve::Recipe> recipe;
  if (auto open = recipe::compose_uninterpolated(path, options, diagnostics)) {
    if (!run_dir.empty()) resolve::locate_as_written(open->root, run_dir);
    if (!fetch(*open, diagnostics)) {
      show(diagnostics);
      return std::nullopt;
    }
    recipe = resolve::interpolate_and_settle(path, *open, registry::Registry::builtin(), diagnostics);
    const core::Node* sweep = recipe->root.find("sweep");
    if (sweep != nullptr && sweep->is_mapping()) sweep::check_sweep(*recipe, *open, diagnostics);
  } else {
    diagnostics.sort();
  }
  if (diagnostics.has_errors()) recipe.reset();
  if (!recipe || !launch::another_process_reports()) show(diagnostics);
  if (!recipe) exit_code = core::kExitUsage;
  return recipe;
}

std::optional<resolve::Recipe> Session::load(const std::shared_ptr<const core::Source>& text,
                                             const recipe::ComposeOptions& options) {
  core::Diagnostics diagnostics;
  auto recipe = resolve::load_recipe_text(text, options, registry::Registry::builtin(), diagnostics);
  if (!recipe || !launch::another_process_reports()) show(diagnostics);
  if (!recipe) exit_code = core::kExitUsage;
  return recipe;
}

std::optional<resolve::Recipe> Session::load(const RecipeFlags& flags) {
  const auto options = changes(flags);
  return options ? load(flags.path, *options) : std::nullopt;
}

bool Session::changes_recipes() {
  core::Diagnostics told_where_they_are_read;
  return !launch_variables().empty() || launcher_size() || !config_in_use(told_where_they_are_read).empty();
}

std::optional<recipe::ComposeOptions> Session::changes(const RecipeFlags& flags) {
  core::Diagnostics diagnostics;
  recipe::ComposeOptions options = compose_options(flags, diagnostics);
  options.below = config_in_use(diagnostics);
  if (diagnostics.has_errors()) {
    show(diagnostics);
    exit_code = core::kExitUsage;
    return std::nullopt;
  }
  const char* variable = std::getenv("ROUX_OUTPUT_DIR");
  if (!output_dir.empty() || (variable != nullptr && *variable != '\0')) {
    // As JSON, so that a folder called `no` or `12` stays text.
    options.overrides.push_back(
        {recipe::Override::Kind::kSet, "output_dir=" + core::to_json(core::Node::string(runs_dir()), -1)});
  }
  return options;
}

void add_override_flags(Command command, RecipeFlags& flags) {
  flags.command = command;
  command
      .add_option("--set", flags.sets,
                  "Override a value: path=value; +path=value appends to a list, ~path deletes a key")
      .type_name("PATH=VALUE")
      .allow_extra_args(false);
  command.add_option("--set-file", flags.set_files, "Merge another file over the recipe")
      .type_name("FILE")
      .allow_extra_args(false);
  command.add_option("--ext", flags.ext, "Set std.extVar(NAME) of a Jsonnet recipe")
      .type_name("NAME=VALUE")
      .allow_extra_args(false);
}

void add_changes(Command command, RecipeFlags& flags) {
  command.add_option(kChanges, flags.changes, "Overrides, as with --set: path=value").type_name("");
}

void add_recipe(Command command, RecipeFlags& flags) {
  command.add_option("RECIPE", flags.path, "Recipe: .yaml, .json or .jsonnet").required();
}

void add_recipe_flags(Command command, RecipeFlags& flags) {
  add_recipe(command, flags);
  add_changes(command, flags);
  add_override_flags(command, flags);
}

recipe::ComposeOptions compose_options(const RecipeFlags& flags, core::Diagnostics& diagnostics) {
  recipe::ComposeOptions options = written_options(flags, diagnostics);
  auto& overrides = options.overrides;
  const std::vector<recipe::Override> variables = launch_variables();
  overrides.insert(overrides.begin(), variables.begin(), variables.end());
  if (auto size = launcher_size()) overrides.push_back(*std::move(size));
  return options;
}

recipe::ComposeOptions written_options(const RecipeFlags& flags, core::Diagnostics& diagnostics) {
  recipe::ComposeOptions options;
  for (const std::string& text : flags.sets_before) options.overrides.push_back({recipe::Override::Kind::kSet, text});
  std::size_t next_set = 0;
  std::size_t next_file = 0;
  std::size_t next_change = 0;
  const auto change = [&](const std::string& text) {
    if (text.find('=') != std::string::npos || text.starts_with('~')) {
      options.overrides.push_back({recipe::Override::Kind::kSet, text, text});
    } else {
      diagnostics.error(location_of_flag(text), "not an override",
                        "write path=value, as with --set; this command accepts one recipe");
    }
  };
  // Later flags override earlier ones, of any kind: the command line knows the order.
  for (const Option& option : flags.command->parse_order()) {
    if (auto launch = launch_change(option)) options.overrides.push_back(*std::move(launch));
    if (auto other = flags.change_of ? flags.change_of(option) : std::nullopt) {
      options.overrides.push_back(*std::move(other));
    }
    if (option.name() == kChanges && next_change < flags.changes.size()) change(flags.changes[next_change++]);
    if (option.name() == "--set" && next_set < flags.sets.size())
      options.overrides.push_back({recipe::Override::Kind::kSet, flags.sets[next_set++]});
    if (option.name() == "--set-file" && next_file < flags.set_files.size())
      options.overrides.push_back({recipe::Override::Kind::kSetFile, flags.set_files[next_file++]});
  }
  // Those of `validate`, which reads them among the paths of its recipes.
  while (next_change < flags.changes.size()) change(flags.changes[next_change++]);
  for (const std::string& text : flags.ext) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      diagnostics.error(location_of_flag("--ext " + text), "--ext must be NAME=VALUE, got \"" + text + "\"");
      continue;
    }
    options.ext[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return options;
}

}  // namespace runner::cli

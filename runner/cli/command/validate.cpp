#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "runner/cli/commands.h"
#include "runner/cli/flags.h"
#include "runner/cli/local_device.h"
#include "runner/cli/tracking.h"
#include "runner/core/platform/files.h"
#include "runner/core/text/utf8.h"
#include "runner/recipe/key_finder.h"
#include "runner/registry/registry.h"
#include "runner/resolve/corrections.h"
#include "runner/resolve/recipe.h"

namespace runner::cli {
namespace {

using core::Node;

struct Arguments {
  std::vector<std::string> paths;
  RecipeFlags flags;
  std::string format = "text";
  bool fix = false;
};

Node text_or_null(const std::string& text) { return text.empty() ? Node::null() : Node::string(text); }

Node number_or_null(int number) { return number == 0 ? Node::null() : Node::integer(number); }

const char* severity_text(core::Severity severity) {
  switch (severity) {
    case core::Severity::kError: return "error";
    case core::Severity::kWarning: return "warning";
    case core::Severity::kNotice: return "notice";
  }
  return "error";
}

/// A list; a row has null for what its diagnostic lacks.
Node diagnostics_json(const core::Diagnostics& diagnostics) {
  Node rows = Node::sequence();
  recipe::KeyFinder finder;
  for (const core::Diagnostic& diagnostic : diagnostics.all()) {
    const core::Location& location = diagnostic.location;
    const bool in_file = location.known() && location.source->kind == core::Source::Kind::kFile;
    Node row = Node::mapping();
    row.set("severity", Node::string(severity_text(diagnostic.severity)));
    row.set("location", text_or_null(location.text()));
    row.set("file", in_file ? Node::string(location.source->name) : Node::null());
    row.set("line", number_or_null(location.line));
    row.set("column", number_or_null(location.line == 0 ? 0 : location.column));
    row.set("key", text_or_null(finder.key_at(location)));
    row.set("message", Node::string(diagnostic.message));
    row.set("hint", text_or_null(diagnostic.hint));
    rows.items().push_back(std::move(row));
  }
  return rows;
}

/// Whether the recipe is right. What is wrong has been told to the session.
bool check(const RecipeFlags& flags, Session& session) {
  const auto recipe = session.load(flags);
  if (recipe) check_named_device(session, *recipe);
  if (recipe) warn_of_missing_servers(session, *recipe);
  return recipe.has_value();
}

/// Writes the corrections into the recipe's file, and says which. False when the session failed.
bool fix(const RecipeFlags& flags, Session& session) {
  const std::string& path = flags.path;
  if (!path.ends_with(".yaml") && !path.ends_with(".yml") && !path.ends_with(".json")) {
    session.fail("--fix corrects recipes of YAML and JSON, and " + path + " is none",
                 "correct it by hand, or leave --fix out");
    return false;
  }
  const auto options = session.changes(flags);
  if (!options) return false;
  const auto text = core::read_file(path, options->limits.file_bytes_max);
  if (!text) return true;  // the check says why
  const auto fixed = resolve::correct_recipe(path, text.value(), *options, registry::Registry::builtin());
  if (fixed.made.empty()) return true;
  core::write_output(path, fixed.text).value();
  for (const resolve::Correction& correction : fixed.made) {
    std::printf("%s: %s is now %s\n", core::escape_for_terminal(correction.at.text()).c_str(),
                core::escape_for_terminal(correction.wrong).c_str(),
                core::escape_for_terminal(correction.right).c_str());
  }
  std::fflush(stdout);
  return true;
}

void print_verdict(const RecipeFlags& flags, Session& session) {
  if (!check(flags, session) || session.quiet) return;
  std::printf("%s: ok\n", core::escape_for_terminal(flags.path).c_str());
  std::fflush(stdout);  // before the notices of the next recipe
}

Node verdict_json(const RecipeFlags& flags, Session& session) {
  core::Diagnostics diagnostics;
  session.kept = &diagnostics;
  const bool ok = check(flags, session);
  session.kept = nullptr;
  Node verdict = Node::mapping();
  verdict.set("recipe", Node::string(flags.path));
  verdict.set("ok", Node::boolean(ok));
  verdict.set("diagnostics", diagnostics_json(diagnostics));
  return verdict;
}

void validate(const Arguments& arguments, Session& session) {
  std::vector<std::string> paths;
  RecipeFlags shared = arguments.flags;
  for (const std::string& word : arguments.paths) {
    std::error_code ignored;
    const bool is_change = word.find('=') != std::string::npos || word.starts_with('~');
    (is_change && !std::filesystem::exists(word, ignored) ? shared.changes : paths).push_back(word);
  }
  if (paths.empty()) return session.fail("RECIPE is missing", "roux validate RECIPE checks a recipe");
  const bool json = arguments.format == "json";
  if (json && arguments.fix) return session.fail("--fix prints text, and --format is json", "leave one of the two out");
  Node verdicts = Node::sequence();
  for (const std::string& path : paths) {
    RecipeFlags flags = shared;
    flags.path = path;
    if (arguments.fix && !fix(flags, session)) return;
    if (json) {
      verdicts.items().push_back(verdict_json(flags, session));
    } else {
      print_verdict(flags, session);
    }
  }
  if (json) std::printf("%s\n", core::to_json(verdicts).c_str());
}

}  // namespace

void add_validate(Command app, Session& session) {
  const auto arguments = std::make_shared<Arguments>();
  Command command = app.add_subcommand("validate", "Check recipes, and report all errors at once");
  command
      .add_option("RECIPE", arguments->paths, "Recipes: .yaml, .json or .jsonnet; overrides, as with --set: path=value")
      .required();
  add_override_flags(command, arguments->flags);
  add_format(command, arguments->format, {"text", "json"});
  command.add_flag("--fix", arguments->fix, "Write corrections of one word, as hints suggest them, into the file");
  command.footer(
      "\nExamples:\n"
      "  roux validate recipes/quickstart.yaml\n"
      "  roux validate recipes/*.yaml --quiet\n"
      "  roux validate recipe.yaml --fix      \"max_step\" becomes \"max_steps\"\n"
      "  roux validate recipe.yaml --format json\n"
      "  roux validate recipes/quickstart.yaml --set training.max_steps=10\n");
  command.callback(
      [arguments, &session] { session.command = [arguments, &session] { validate(*arguments, session); }; });
}

}  // namespace runner::cli

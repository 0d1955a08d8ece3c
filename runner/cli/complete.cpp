#include "runner/cli/complete.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "runner/artifact/checkpoint_dir.h"
#include "runner/cli/flags.h"
#include "runner/core/clock.h"
#include "runner/core/path.h"
#include "runner/core/text/utf8.h"
#include "runner/query/filter.h"
#include "runner/registry/reference/lookup.h"
#include "runner/registry/registry.h"
#include "runner/resolve/load.h"
#include "runner/store/database/text.h"
#include "runner/store/run_reader.h"
#include "runner/sweep/studies.h"

namespace runner::cli {
namespace {

using Words = std::vector<std::string>;
using core::Node;
using registry::Property;
using registry::Registry;
using store::RunSummary;

/// What an option or an argument stands for.
enum class What {
  kFiles,
  kRuns,
  kMetrics,
  kNames,
  kTags,
  kRecipeKeys,
  kRecipePaths,
  kCheckpoints,
  kKinds,
  kComponents,
  kRunCheckpoints,
  kSweeps,
  kSamplers,
  kTrackers
};

/// By the name of the flag or argument; all else is left to the shell. `command` and its `group` are ""
/// for a flag.
What meaning_of(const std::string& command, const std::string& group, const std::string& name) {
  const bool is_weights =
      command == "merge-weights" || command == "export" || (command == "diff" && group == "checkpoints");
  if (name == "--metric" || name == "METRIC") return What::kMetrics;
  if (name == "--sort" || name == "--columns" || name == "--group-by" || name == "--filter" || name == "--parameters")
    return What::kNames;
  if (name == "--set" || name == "CHANGES" || name == "VARIED") return What::kRecipeKeys;
  if (name == "KEY" && command == "explain") return What::kRecipePaths;
  if (is_weights && (name == "CHECKPOINT" || name == "A" || name == "B")) return What::kRunCheckpoints;
  if (name == "--checkpoint" || name == "CHECKPOINT") return What::kCheckpoints;
  if (name == "--sampler") return What::kSamplers;
  if (name == "--tracker") return What::kTrackers;
  if (name == "RUN" || name == "--run" || name == "A" || name == "B") return What::kRuns;
  if (name == "TAG") return What::kTags;
  if (name == "SWEEP") return What::kSweeps;
  if (name == "KIND") return What::kKinds;
  if (command == "explain") return What::kComponents;
  return What::kFiles;
}

std::vector<RunSummary> all_runs(const Session& session) {
  return store::list_runs(session.runs_dir(), core::system_clock(), {.with_recipe = false});
}

Words metrics(const Session& session) {
  std::set<std::string> names;
  for (const RunSummary& run : all_runs(session)) {
    for (const auto& [name, value] : run.metrics) names.insert(name);
  }
  return {names.begin(), names.end()};
}

Words run_words(const Session& session) {
  Words words = {"last"};
  std::set<std::string> names;
  for (const RunSummary& run : all_runs(session)) {
    words.push_back(run.id);
    names.insert(run.label.empty() ? run.name : run.label);
  }
  words.insert(words.end(), names.begin(), names.end());
  return words;
}

/// Uses the newest run's recipe for all runs: reading each would take seconds.
Words names(const Session& session) {
  std::vector<RunSummary> runs = all_runs(session);
  if (!runs.empty()) {
    const auto newest = store::find_run(session.runs_dir(), runs.front().id, core::system_clock());
    if (newest) runs.front() = newest.value();
  }
  Words words = query::known_names(runs);
  for (const RunSummary& run : runs) {
    for (const std::string& tag : run.tags) words.push_back("tag:" + tag);
  }
  return words;
}

Words tags(const Session& session) {
  std::set<std::string> found;
  for (const RunSummary& run : all_runs(session)) found.insert(run.tags.begin(), run.tags.end());
  return {found.begin(), found.end()};
}

/// `kind`: that of the component whose keys these are, which is not entered again.
void add_keys(const std::vector<Property>& properties, const std::string& prefix, Words& words,
              const std::string& kind = "") {
  const Registry& registry = Registry::builtin();
  for (const Property& property : properties) {
    const std::string path = core::join_path(prefix, property.name);
    words.push_back(path + "=");
    if (property.type == Property::Type::kSection) {
      if (const auto* section = registry.find("section", property.name)) add_keys(section->properties, path, words);
    } else if (property.type == Property::Type::kComponent && property.kind != kind) {
      for (const std::string& name : registry.names(property.kind)) {
        add_keys(registry.find(property.kind, name)->properties, path, words, property.kind);
      }
    } else if (property.type == Property::Type::kObject) {
      add_keys(property.properties, path, words);
    }
  }
}

Words kinds() {
  Words words = {"section"};
  for (const registry::Kind& kind : Registry::builtin().kinds()) words.push_back(kind.name);
  return words;
}

Words components() {
  Words words;
  for (const std::string& kind : kinds()) {
    for (const std::string& name : Registry::builtin().names(kind)) words.push_back(kind + "/" + name);
  }
  return words;
}

Words sweeps(const Session& session) {
  Words words = sweep::sweep_names(session.runs_dir()).value_or({});
  std::set<std::string> names = {"last"};
  for (const std::string& word : words) names.insert(store::parse_folder_name(word)->run_name);
  words.insert(words.end(), names.begin(), names.end());
  return words;
}

/// Where the cursor is: the innermost command, and its arguments before the cursor.
struct Position {
  const CLI::App* command;
  Words arguments = {};
  std::map<const CLI::Option*, std::string> values = {};  ///< of flags
  const CLI::Option* flag = nullptr;                      ///< the one whose value is completed
};

const CLI::Option* find_flag(const CLI::App* command, const std::string& name) {
  for (; command != nullptr; command = command->get_parent()) {
    if (const CLI::Option* option = command->get_option_no_throw(name)) return option;
  }
  return nullptr;
}

const CLI::App* find_command(const CLI::App& command, const std::string& name) {
  const auto fits = command.get_subcommands([&](const CLI::App* inner) { return inner->get_name() == name; });
  return fits.empty() ? nullptr : fits.front();
}

Position position_of(const CLI::App& app, const Words& words) {
  Position at{&app};
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    const std::string& word = words[i];
    if (at.flag != nullptr) {
      at.values[at.flag] = word;
      at.flag = nullptr;
    } else if (word.starts_with('-') && word.size() > 1) {
      const CLI::Option* option = word.find('=') == std::string::npos ? find_flag(at.command, word) : nullptr;
      if (option != nullptr && option->get_expected_max() > 0) at.flag = option;
    } else if (const CLI::App* inner = find_command(*at.command, word); inner != nullptr && at.arguments.empty()) {
      at.command = inner;
    } else {
      at.arguments.push_back(word);
    }
  }
  return at;
}

std::vector<const CLI::Option*> arguments_of(const CLI::App* command) {
  return command->get_options([](const CLI::Option* one) { return one->get_positional(); });
}

/// The first argument if it is called `name`; otherwise "".
std::string first_argument(const Position& at, const std::string& name) {
  const auto options = arguments_of(at.command);
  return !at.arguments.empty() && !options.empty() && options.front()->get_name(true) == name ? at.arguments.front()
                                                                                              : "";
}

std::optional<resolve::Recipe> read_quietly(const std::string& path) {
  core::Diagnostics unsaid;
  return resolve::read_recipe(path, {}, Registry::builtin(), unsaid);
}

/// The recipe that the command line names, or that of the run that it names.
std::optional<resolve::Recipe> named_recipe(const Position& at, const Session& session) {
  for (const char* name : {"RECIPE", "WHAT"}) {
    const std::string path = first_argument(at, name);
    if (std::filesystem::is_regular_file(path)) return read_quietly(path);
  }
  for (const char* name : {"RUN", "WHAT"}) {
    const std::string text = first_argument(at, name);
    const auto run = store::find_run(session.runs_dir(), text, core::system_clock());
    if (!text.empty() && run) return read_quietly(store::branch_file(run.value().run_dir, "resolved.json"));
  }
  return std::nullopt;
}

/// `best`, `last` and the steps of the run: --run, RUN, or the newest of the recipe.
Words checkpoints(const Position& at, const Session& session) {
  Words words = {"best", "last"};
  const CLI::Option* flag = find_flag(at.command, "--run");
  const auto value = at.values.find(flag);
  std::string folder = session.runs_dir();
  std::string run = value != at.values.end() ? value->second : first_argument(at, "RUN");
  if (const std::string word = first_argument(at, "RECIPE"); run.empty() && !std::filesystem::is_regular_file(word))
    run = word;  // `eval` and `predict` take a run in place of a recipe
  // `roux checkpoints pin` and the like use the last run.
  if (run.empty() && at.command->get_parent()->get_name() == "checkpoints") run = "last";
  if (const auto recipe = run.empty() ? named_recipe(at, session) : std::nullopt) {
    const Node* name = recipe->root.find("run_name");
    const Node* output_dir = recipe->root.find("output_dir");
    if (name != nullptr && name->is_string()) run = name->as_string();
    if (session.output_dir.empty() && output_dir != nullptr && output_dir->is_string())
      folder = output_dir->as_string();
  }
  const auto found = store::find_run(folder, run, core::system_clock());
  if (run.empty() || !found) return words;
  for (const artifact::CheckpointInfo& info : artifact::list_checkpoints(found.value().run_dir + "/checkpoints")) {
    words.push_back(std::filesystem::path(info.path).filename().string());
  }
  return words;
}

/// `last:best`, `tiny-gpt:last`
Words run_checkpoints(const Session& session) {
  Words words;
  for (const std::string& run : run_words(session)) {
    for (const char* which : {":best", ":last"}) words.push_back(run + which);
  }
  return words;
}

/// The keys of a recipe from `path` on, each followed by `end`: those that its components accept, and items of lists.
void add_paths(const Node& root, const std::string& path, const Node& value, const std::string& end, Words& words) {
  const Registry& registry = Registry::builtin();
  std::set<std::string> keys;
  for (const Node::Entry& entry : value.entries()) keys.insert(entry.key);
  const auto add = [&keys](const std::vector<Property>& properties) {
    for (const Property& property : properties) keys.insert(property.name);
  };
  const registry::PathSchema described = registry::find_schema(registry, root, path);
  if (described.fragment != nullptr) {
    add(described.fragment->properties);
    if (const auto* common = registry.common(described.fragment->kind)) add(common->properties);
  } else if (described.property != nullptr && described.property->type == Property::Type::kObject) {
    add(described.property->properties);
  }
  for (const std::string& key : keys) {
    const std::string inner_path = core::join_path(path, key);
    const Node* inner = value.find(key);
    words.push_back(inner_path + end);
    add_paths(root, inner_path, inner != nullptr ? *inner : Node(), end, words);
  }
  for (std::size_t i = 0; i < value.items().size(); ++i) {
    const std::string inner_path = path + "[" + std::to_string(i) + "]";
    words.push_back(inner_path + end);
    add_paths(root, inner_path, value.items()[i], end, words);
  }
}

/// Keys of the recipe that the command line names; without one, keys of all components.
Words recipe_paths(const Position& at, const Session& session, const std::string& end) {
  Words words;
  if (const auto recipe = named_recipe(at, session)) {
    add_paths(recipe->root, "", recipe->root, end, words);
  } else if (!end.empty()) {
    add_keys(Registry::builtin().find("section", "recipe")->properties, "", words);
  }
  return words;
}

/// `optimizer.type=ad`: the values that the schema lists for the key, each as `KEY=VALUE`. After a comma, of a list of
/// values, too.
Words recipe_values(const Position& at, const Session& session, const std::string& begun) {
  const Registry& registry = Registry::builtin();
  const std::string key = begun.substr(0, begun.find('='));
  const std::string before = begun.substr(0, begun.find_last_of("=,") + 1);
  const bool is_type = key.ends_with(".type");
  const auto recipe = named_recipe(at, session);
  const Property* property =
      registry::find_schema(registry, recipe ? recipe->root : Node(), is_type ? key.substr(0, key.rfind('.')) : key)
          .property;
  if (property == nullptr) return {};
  Words values = property->enum_values;
  if (property->type == Property::Type::kComponent) values = registry.names(property->kind);
  if (property->type == Property::Type::kBoolean) values = {"false", "true"};
  for (std::string& value : values) value.insert(0, before);
  return values;
}

Words words_for(What what, const Position& at, const Session& session, const std::string& begun) {
  switch (what) {
    case What::kFiles: return {};
    case What::kRuns: return run_words(session);
    case What::kMetrics: return metrics(session);
    case What::kNames: return names(session);
    case What::kTags: return tags(session);
    case What::kKinds: return kinds();
    case What::kComponents: return components();
    case What::kSweeps: return sweeps(session);
    case What::kRunCheckpoints: return run_checkpoints(session);
    case What::kSamplers: return Registry::builtin().names("sampler");
    case What::kTrackers: return Registry::builtin().names("tracker");
    case What::kRecipeKeys:
      return begun.find('=') == std::string::npos ? recipe_paths(at, session, "=") : recipe_values(at, session, begun);
    case What::kRecipePaths: return recipe_paths(at, session, "");
    case What::kCheckpoints: return checkpoints(at, session);
  }
  return {};
}

/// Those that the option itself knows, otherwise those of its meaning.
Words words_of(const CLI::Option& option, What what, const Position& at, const Session& session,
               const std::string& begun) {
  Words words = offered(option);
  return words.empty() ? words_for(what, at, session, begun) : words;
}

/// `--format=js`: the values of the flag, each behind its name.
Words words_after_equals(const Position& at, const Session& session, const std::string& name,
                         const std::string& begun) {
  const CLI::Option* flag = find_flag(at.command, name);
  if (flag == nullptr) return {};
  Words words = words_of(*flag, meaning_of("", "", name), at, session, begun);
  for (std::string& word : words) word.insert(0, name + "=");
  return words;
}

/// The argument at the cursor; the last one repeats if it accepts several.
const CLI::Option* argument_at(const Position& at) {
  const CLI::Option* last = nullptr;
  std::size_t position = 0;
  for (const CLI::Option* option : arguments_of(at.command)) {
    last = option;
    if (position++ == at.arguments.size()) return option;
  }
  return last != nullptr && last->get_expected_max() > 1 ? last : nullptr;
}

void add_commands(const CLI::App& command, Words& words) {
  // Without internal ones, which help does not show.
  for (const CLI::App* inner : command.get_subcommands([](const CLI::App* one) { return !one->get_group().empty(); })) {
    words.push_back(inner->get_name());
  }
}

void add_flags(const CLI::App* command, Words& words) {
  for (; command != nullptr; command = command->get_parent()) {
    for (const CLI::Option* option :
         command->get_options([](const CLI::Option* one) { return !one->get_group().empty(); })) {
      for (const std::string& name : option->get_lnames()) {
        if (name.find('_') == std::string::npos) words.push_back("--" + name);  // help leaves them out, too
      }
    }
  }
}

}  // namespace

Words completions(const CLI::App& app, const Session& given, const Words& words) {
  const std::string begun = words.empty() ? "" : words.back();
  const Position at = position_of(app, words);
  Session session = given;
  for (std::size_t i = 0; i + 2 < words.size(); ++i) {
    if (words[i] == "--output-dir") session.output_dir = words[i + 1];
  }
  Words found;
  if (at.flag != nullptr) {
    const std::string name = at.flag->get_lnames().empty() ? "" : at.flag->get_lnames().front();
    found = words_of(*at.flag, meaning_of("", "", "--" + name), at, session, begun);
  } else if (const std::size_t equals = begun.find('='); begun.starts_with("--") && equals != std::string::npos) {
    found = words_after_equals(at, session, begun.substr(0, equals), begun.substr(equals + 1));
  } else if (begun.starts_with('-')) {
    add_flags(at.command, found);
  } else {
    if (at.arguments.empty()) add_commands(*at.command, found);
    if (const CLI::Option* argument = argument_at(at)) {
      const std::string group = at.command->get_parent() == nullptr ? "" : at.command->get_parent()->get_name();
      const What what = meaning_of(at.command->get_name(), group, argument->get_name(true));
      for (std::string& word : words_of(*argument, what, at, session, begun)) found.push_back(std::move(word));
    }
  }
  std::erase_if(found, [&](const std::string& word) {
    // One word a line, so a word with a line end is omitted.
    return !word.starts_with(begun) || core::escape_for_terminal(word) != word;
  });
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace runner::cli

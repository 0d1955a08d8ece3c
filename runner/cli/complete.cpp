#include "runner/cli/complete.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <set>

#include "runner/cli/sweep_command.h"
#include "runner/core/clock.h"
#include "runner/core/path.h"
#include "runner/core/utf8.h"
#include "runner/query/filter.h"
#include "runner/registry/registry.h"
#include "runner/store/database/text.h"

namespace runner::cli {
namespace {

using Words = std::vector<std::string>;
using registry::Property;
using registry::Registry;
using store::RunSummary;

/// What a name of an option or an argument stands for.
enum class What {
  kFiles,
  kRuns,
  kMetrics,
  kNames,
  kTags,
  kRecipeKeys,
  kKinds,
  kComponents,
  kSweeps,
  kSweepPlots,
  kSamplers
};

/// Flags by their name, arguments by theirs; what is not here is the shell's business.
What meaning_of(const std::string& command, const std::string& name) {
  if (name == "--metric" || name == "METRIC") return What::kMetrics;
  if (name == "--sort" || name == "--columns" || name == "--group-by" || name == "--filter" || name == "--parameters")
    return What::kNames;
  if (name == "--set" || name == "varied") return What::kRecipeKeys;
  if (name == "--sampler") return What::kSamplers;
  if (name == "RUN" || name == "run" || name == "A" || name == "B") return What::kRuns;
  if (name == "TAG") return What::kTags;
  if (name == "SWEEP") return What::kSweeps;
  if (name == "KIND") return command == "plot" ? What::kSweepPlots : What::kKinds;
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

/// The newest run's recipe stands for all: they are seldom of different kinds, and reading each would take seconds.
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

/// `kind` of the component whose keys these are: one inside another of its own kind has no end.
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

Words words_for(What what, const Session& session) {
  switch (what) {
    case What::kFiles: return {};
    case What::kRuns: return run_words(session);
    case What::kMetrics: return metrics(session);
    case What::kNames: return names(session);
    case What::kTags: return tags(session);
    case What::kKinds: return kinds();
    case What::kComponents: return components();
    case What::kSweeps: return sweeps(session);
    case What::kSweepPlots: return sweep_plot_kinds();
    case What::kSamplers: return Registry::builtin().names("sampler");
    case What::kRecipeKeys: {
      Words words;
      add_keys(Registry::builtin().find("section", "recipe")->properties, "", words);
      return words;
    }
  }
  return {};
}

/// Where the cursor is: the innermost command that was named, and how many of its arguments stand before it.
struct Position {
  const CLI::App* command;
  std::size_t arguments = 0;
  const CLI::Option* flag = nullptr;  ///< whose value the cursor is at
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
      at.flag = nullptr;
    } else if (word.starts_with('-') && word.size() > 1) {
      const CLI::Option* option = word.find('=') == std::string::npos ? find_flag(at.command, word) : nullptr;
      if (option != nullptr && option->get_expected_max() > 0) at.flag = option;
    } else if (const CLI::App* inner = find_command(*at.command, word); inner != nullptr && at.arguments == 0) {
      at.command = inner;
    } else {
      ++at.arguments;
    }
  }
  return at;
}

/// The argument that the cursor is at; the last one goes on for ever where it takes several.
const CLI::Option* argument_at(const Position& at) {
  const CLI::Option* last = nullptr;
  std::size_t place = 0;
  for (const CLI::Option* option :
       at.command->get_options([](const CLI::Option* one) { return one->get_positional(); })) {
    last = option;
    if (place++ == at.arguments) return option;
  }
  return last != nullptr && last->get_expected_max() > 1 ? last : nullptr;
}

void add_commands(const CLI::App& command, Words& words) {
  // Those that help does not name are not for people.
  for (const CLI::App* inner : command.get_subcommands([](const CLI::App* one) { return !one->get_group().empty(); })) {
    words.push_back(inner->get_name());
  }
}

void add_flags(const CLI::App* command, Words& words) {
  for (; command != nullptr; command = command->get_parent()) {
    for (const CLI::Option* option : command->get_options([](const CLI::Option*) { return true; })) {
      for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
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
    found =
        words_for(meaning_of("", "--" + (at.flag->get_lnames().empty() ? "" : at.flag->get_lnames().front())), session);
  } else if (begun.starts_with('-')) {
    add_flags(at.command, found);
  } else {
    if (at.arguments == 0) add_commands(*at.command, found);
    if (const CLI::Option* argument = argument_at(at)) {
      for (std::string& word : words_for(meaning_of(at.command->get_name(), argument->get_name(true)), session)) {
        found.push_back(std::move(word));
      }
    }
  }
  std::erase_if(found, [&](const std::string& word) {
    // A line a word: one that has a line end in it cannot be said.
    return !word.starts_with(begun) || core::escape_for_terminal(word) != word;
  });
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace runner::cli

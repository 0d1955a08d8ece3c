#include "runner/cli/parser/given_places.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <array>
#include <string>

#include "runner/artifact/io/output_place.h"
#include "runner/core/error.h"

namespace runner::cli {
namespace {

/// Arguments that may be empty, and those that say themselves what they must be.
constexpr std::array kNoPlaces = {"TEXT", "NAME", "TAG", "ID", "KIND", "SHELL", "TRIAL", "KEY"};
/// The words for the values of flags that are places.
constexpr std::array kPlaces = {"RUN", "FILE", "DIR", "FOLDER", "PATH", "CHECKPOINT"};
constexpr std::array kOutputs = {"--output", "--svg", "--png"};

template <std::size_t size>
bool contains(const std::array<const char*, size>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool is_place(const CLI::Option& option) {
  if (option.get_positional()) return !contains(kNoPlaces, option.get_name(true));
  const std::string type = option.get_type_name();
  return contains(kPlaces, type.substr(0, type.find(':')));
}

void check_option(const CLI::Option& option) {
  if (!is_place(option)) return;
  const std::string name = option.get_name();
  for (const std::string& value : option.results()) {
    if (value.empty()) {
      const char* const hint = "a variable of the shell that is not set gives \"\"; name what is meant";
      throw core::RunError(name + " must not be empty", hint, core::kExitUsage);
    }
    if (contains(kOutputs, name)) artifact::check_output_place(value).value();
  }
}

}  // namespace

void check_given_places(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() > 0) check_option(*option);
  }
  for (const CLI::App* command : app.get_subcommands()) check_given_places(*command);
}

}  // namespace runner::cli

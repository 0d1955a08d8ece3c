#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <string>
#include <utility>
#include <vector>

#include "runner/cli/session.h"
#include "runner/core/text.h"

// Flags that several commands share.

namespace runner::cli {

/// `--format`, one of `known`.
void add_format(CLI::App& command, std::string& format, const std::vector<std::string>& known);

/// `-o, --output`. `what`: "File to write; standard output by default".
void add_output(CLI::App& command, std::string& file, const char* what);

/// Prints that a flag was given by its old name.
void notice_old_flag(const Session& session, const std::string& old_name, const std::string& new_name);

/// `--json`, the old word for `--format json`: accepted with a notice, not shown in help.
void add_old_json(CLI::App& command, std::string& format, Session& session);

/// `-y, --yes`.
void add_yes(CLI::App& command, bool& yes);

/// A flag with one of these values.
template <typename Value>
CLI::Option* add_choice(CLI::App& command, const std::string& flag, const std::string& text, Value& value,
                        const std::vector<std::pair<std::string, Value>>& known) {
  const std::string list = core::joined(known, ", ", &std::pair<std::string, Value>::first);
  const auto position = [known](const std::string& word) {
    std::size_t at = 0;
    while (at < known.size() && known[at].first != word) ++at;
    return at;
  };
  return command
      .add_option_function<std::string>(
          flag, [&value, known, position](const std::string& word) { value = known[position(word)].second; },
          text + ": " + list)
      ->type_name("WORD")
      ->check([known, position, list](const std::string& word) {
        return position(word) < known.size() ? std::string() : "must be one of " + list + ", got \"" + word + "\"";
      });
}

}  // namespace runner::cli

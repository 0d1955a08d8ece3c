#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runner/cli/session.h"
#include "runner/core/text/text.h"
#include "runner/review/plot_file.h"

// Flags that several commands share.

namespace CLI {
class Option;
}

namespace runner::cli {

/// Text that stays text as a value of a recipe: quoted, `${` escaped.
std::string recipe_text(const std::string& text);

/// Refuses values that are not among `known`, and lets completion offer these.
Option accept_only(Option option, const std::vector<std::string>& known);

/// Lets completion offer these values. What is given is checked elsewhere.
Option offer(Option option, const std::vector<std::string>& known);

/// The values that completion offers for an option; none if they are not known beforehand.
std::vector<std::string> offered(const CLI::Option& option);

/// `--format`, one of `known`.
Option add_format(Command command, std::string& format, const std::vector<std::string>& known);

/// `--format table`, the old word for `--format text`: accepted with a notice, not shown in help.
void read_table_as_text(Option format, const Session& session);

/// `-o, --output`. `what`: "File to write; standard output by default".
void add_output(Command command, std::string& file, const char* what);

/// Prints that a flag was given by its old name.
void notice_old_flag(const Session& session, const std::string& old_name, const std::string& new_name);

/// `--json`, the old word for `--format json`: accepted with a notice, not shown in help.
void add_old_json(Command command, std::string& format, Session& session);

/// --svg, --png, --width, --height.
void add_picture_flags(Command command, review::PictureRequest& request);

/// `-y, --yes`.
void add_yes(Command command, bool& yes);

/// A flag with one of these values.
template <typename Value>
Option add_choice(Command command, const std::string& flag, const std::string& text, Value& value,
                  const std::vector<std::pair<std::string, Value>>& known) {
  std::vector<std::string> words;
  for (const auto& [word, meant] : known) words.push_back(word);
  const auto read = [&value, known](const std::string& given) {
    for (const auto& [word, meant] : known) {
      if (word == given) value = meant;
    }
  };
  Option option = command.add_option_function(flag, read, text + ": " + core::joined(words)).type_name("WORD");
  return accept_only(option, words);
}

}  // namespace runner::cli

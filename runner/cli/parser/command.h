#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

// What a command needs of CLI11. Only command.cpp and the files that read the parser itself include CLI11: its header
// costs every file that includes it three seconds to compile.

namespace runner::cli {

/// A flag or an argument of a command. A handle: copies are the same option, which lives as long as the parser.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option required();
  /// The word for the value in help: FILE, N.
  Option type_name(const std::string& name);
  /// The heading in help; "" hides the option.
  Option group(const std::string& name);
  /// A list whose values stand in one word, separated by this character.
  Option delimiter(char separator);
  /// Whether one flag takes several words of the command line; a list's flag does unless told.
  Option allow_extra_args(bool allow);
  /// Minimum and maximum number of values.
  Option expected(int least, int most);
  /// The last one counts when the flag is given several times.
  Option take_last();
  Option excludes(Option other);
  /// `problem` returns what is wrong with a value, "" if nothing is. `description`: a part of the type's name.
  Option check(const std::function<std::string(const std::string&)>& problem, const std::string& description = "");
  /// Replaces a value before it is read.
  Option transform(const std::function<std::string(const std::string&)>& change);
  /// Refuses numbers outside [least, most]. Number: int, std::int64_t or double.
  template <typename Number>
  Option in_range(Number least, Number most);
  /// Refuses numbers that are not above zero.
  Option positive();

  /// How often it was given.
  std::size_t count() const;
  /// `--set`; of an argument, its word.
  std::string name() const;
  /// `num-processes` and `num_processes` of `--num-processes,--num_processes`.
  std::vector<std::string> long_names() const;
  std::string group_name() const;
  /// The values that were given, as text.
  std::vector<std::string> values() const;

 private:
  CLI::Option* option_;
};

/// A command, or a group of commands. A handle: copies are the same command, which lives as long as the parser.
class Command {
 public:
  explicit Command(CLI::App& app) : app_(&app) {}

  Command add_subcommand(const std::string& name, const std::string& help);
  /// A flag with a value (`--output,-o`), or an argument (`RUN`). `value` has to live until the command has run.
  /// Value: std::string, int, std::int64_t, double, ..., a list or an std::optional of them; see command.cpp.
  template <typename Value>
  Option add_option(const std::string& names, Value& value, const std::string& help);
  /// Calls `read` with the value, or with the values.
  Option add_option_function(const std::string& names, const std::function<void(const std::string&)>& read,
                             const std::string& help);
  Option add_list_function(const std::string& names, const std::function<void(const std::vector<std::string>&)>& read,
                           const std::string& help);
  /// A flag without a value.
  Option add_flag(const std::string& names, bool& value, const std::string& help);
  Option add_flag_callback(const std::string& names, const std::function<void()>& read, const std::string& help = "");
  /// The end of its help.
  Command footer(const std::string& text);
  /// Hidden from help by "".
  Command group(const std::string& name);
  /// Lets the parent's flags stand after this command's name.
  Command fallthrough();
  /// Called when the command was named and its line is right.
  Command callback(const std::function<void()>& function);

  /// The options that were given, in the order of the command line; a repeated one as often as it was given.
  std::vector<Option> parse_order() const;

 private:
  CLI::App* app_;
};

}  // namespace runner::cli

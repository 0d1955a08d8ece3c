#include "runner/cli/flag_errors.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runner/cli/flags.h"
#include "runner/core/text/suggest.h"
#include "runner/recipe/document.h"
#include "runner/registry/validate.h"

namespace runner::cli {
namespace {

bool starts_with_dash(const std::string& text) { return text.size() > 1 && text[0] == '-'; }

std::string lower_first(std::string text) {
  if (text.size() > 1 && !(text[1] >= 'A' && text[1] <= 'Z') && text[0] >= 'A' && text[0] <= 'Z')
    text[0] = static_cast<char>(text[0] - 'A' + 'a');
  while (!text.empty() && (text.back() == '\n' || text.back() == '.')) text.pop_back();
  return text;
}

/// The innermost command on the command line.
CLI::App* chosen_command(CLI::App& app) {
  CLI::App* command = &app;
  for (;;) {
    const std::vector<CLI::App*> inner = command->get_subcommands();
    if (inner.empty()) return command;
    command = inner.back();
  }
}

std::string full_name(const CLI::App* command) {
  std::string name = command->get_name();
  for (const CLI::App* parent = command->get_parent(); parent != nullptr; parent = parent->get_parent())
    name = parent->get_name() + " " + name;
  return name;
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  return names;
}

std::vector<std::string> flag_names(const CLI::App* command) {
  std::vector<std::string> names;
  for (; command != nullptr; command = command->get_parent()) {
    for (const CLI::Option* option : command->get_options([](const CLI::Option*) { return true; })) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
  }
  return names;
}

struct Meant {
  const char *theirs, *ours;
};

/// What words of other programs are called here.
constexpr Meant kMeant[] = {
    {"train", "run"},  {"fit", "run"},       {"start", "run"},       {"show", "runs show"}, {"ls", "runs list"},
    {"test", "eval"},  {"evaluate", "eval"}, {"continue", "resume"}, {"check", "validate"}, {"compare", "runs compare"},
    {"help", "--help"}};
constexpr Meant kMeantInGroup[] = {{"ls", "list"},     {"delete", "rm"}, {"remove", "rm"}, {"undelete", "restore"},
                                   {"status", "show"}, {"info", "show"}, {"start", "run"}, {"check", "verify"}};

std::string meant_command(std::span<const Meant> table, const std::string& word) {
  for (const auto& [theirs, ours] : table) {
    if (word == theirs) return ours;
  }
  return "";
}

std::string word_behind(const std::vector<std::string>& words, const std::string& word) {
  const auto found = std::find(words.begin(), words.end(), word);
  return found == words.end() || found + 1 == words.end() ? "" : *(found + 1);
}

/// `--set optimizer.lr=1e-3` for `--lr 1e-3`, where the command takes changes of a recipe; else "". `next` is the word
/// behind the flag.
std::string setting_for(const std::string& flag, const std::vector<std::string>& flags, const std::string& next) {
  if (std::find(flags.begin(), flags.end(), "--set") == flags.end() || !flag.starts_with("--")) return "";
  const std::size_t equals = flag.find('=');
  std::string word = flag.substr(2, equals == flag.npos ? flag.npos : equals - 2);
  std::replace(word.begin(), word.end(), '-', '_');
  // `--optimizer.lr 1` of Hydra and Lightning names a path already.
  const bool is_path = word.find('.') != word.npos && word.front() != '.' && word.back() != '.';
  const std::string path = is_path ? word : registry::meant_path(word, registry::Registry::builtin());
  if (path.empty()) return "";
  const std::string value = equals != flag.npos                      ? flag.substr(equals + 1)
                            : next.empty() || starts_with_dash(next) ? "VALUE"
                                                                     : next;
  const bool plain = value.find_first_of(" \t'\"\\$`[]{}*?&|;<>()") == value.npos;
  return plain ? "--set " + path + "=" + value : "--set " + path + "=VALUE";
}

bool takes_checkpoint(const CLI::App& command) {
  const auto named = command.get_options(
      [](const CLI::Option* option) { return option->get_positional() && option->get_name() == "CHECKPOINT"; });
  return !named.empty();
}

/// For a flag that names an output in other programs: how this command is told where to write. "" where it is no such
/// flag, or where it may mean the folder of the runs, `--output-dir`: of commands that start some.
std::string output_hint(const CLI::App& command, const std::string& flag, const std::vector<std::string>& flags) {
  static constexpr std::array kFiles = {"-o", "--out", "--output", "--outfile", "--out-file", "--output-file"};
  static constexpr std::array kFolders = {"--out-dir", "--out_dir", "--output_dir"};
  const auto has = [](const auto& words, const std::string& word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  if (!has(kFiles, flag) && !has(kFolders, flag)) return "";
  std::string words = full_name(&command);
  bool has_place = false;
  for (const CLI::Option* option : command.get_options([](const CLI::Option* one) { return one->get_positional(); })) {
    words += " " + option->get_name();
    has_place = has_place || option->get_name() == "DIR" || option->get_name() == "OUTPUT";
  }
  if (has_place) return "name it without a flag: `" + words + "`";
  if (has(kFolders, flag) || has(flags, "--new")) return "";
  return has(flags, "--output") ? "did you mean --output?" : "see `" + full_name(&command) + " --help`";
}

/// Reports words that no command accepts.
void refuse_extras(CLI::App& app, Session& session) {
  CLI::App* command = chosen_command(app);
  const std::vector<std::string> extras = app.remaining(true);
  const std::string word = extras.empty() ? "" : extras[0];
  const std::string help = "see `" + full_name(command) + " --help`";
  if (starts_with_dash(word)) {
    const std::string flag = word.substr(0, word.find('='));
    const std::vector<std::string> flags = flag_names(command);
    const std::string near = core::closest(flag, flags);
    // A conversation takes few of the keys that a recipe takes.
    const bool chats = command->get_name() == "chat";
    const std::string set = chats ? "" : setting_for(word, flags, word_behind(session.command_line, word));
    // `--output_dir` is the flag, `--lr` is not `--log`.
    std::string dashed = flag;
    std::replace(dashed.begin(), dashed.end(), '_', '-');
    // Of the commands that read one checkpoint: it is named behind its run.
    if (flag == "--checkpoint" && takes_checkpoint(*command)) {
      return session.fail(full_name(command) + " has no flag " + flag,
                          "name it behind the run: RUN:best, RUN:step-000500");
    }
    if (const std::string hint = output_hint(*command, flag, flags); !hint.empty()) {
      return session.fail(full_name(command) + " has no flag " + flag, hint);
    }
    const bool is_key = !set.empty() && near != dashed;
    return session.fail(full_name(command) + " has no flag " + flag, is_key         ? "write " + set
                                                                     : near.empty() ? help
                                                                                    : "did you mean " + near + "?");
  }
  const std::vector<std::string> commands = command_names(*command);
  if (commands.empty())
    return session.fail(full_name(command) + " accepts no further argument, got \"" + word + "\"", help);
  std::string hint = "see `" + full_name(command) + " --help` for its commands";
  const bool is_group = command != &app;
  const std::string meant = is_group ? meant_command(kMeantInGroup, word) : meant_command(kMeant, word);
  const bool exists = !is_group || std::find(commands.begin(), commands.end(), meant) != commands.end();
  if (!meant.empty() && exists) {
    hint = "did you mean `" + full_name(command) + " " + meant + "`?";
  } else if (const std::string near = core::closest(word, commands); !near.empty()) {
    hint = "did you mean `" + full_name(command) + " " + near + "`?";
  } else if (command == &app && recipe::looks_like_recipe(word)) {
    hint = "did you mean `roux run " + word + "`?";
  }
  session.fail(full_name(command) + " has no command \"" + word + "\"", hint);
}

/// `0.999900` -> `0.9999`
std::string without_zeros(std::string number) {
  if (number.find('.') == std::string::npos) return number;
  while (number.ends_with('0')) number.pop_back();
  if (number.ends_with('.')) number.pop_back();
  return number;
}

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789+-.eE") == std::string::npos;
}

/// `Value 3 not in range 10 to 2000` -> `must be 10 to 2000, got 3`. Everything else only loses its capital.
std::string requirement(const std::string& text) {
  static const std::string kValue = "Value ", kRange = " not in range ", kTo = " to ";
  const std::size_t range = text.find(kRange), to = text.find(kTo, range);
  if (!text.starts_with(kValue) || range == std::string::npos || to == std::string::npos) return lower_first(text);
  const std::string low = text.substr(range + kRange.size(), to - range - kRange.size());
  const std::string high = text.substr(to + kTo.size());
  const bool is_open = high.size() > 300;  // CLI::PositiveNumber prints the largest double in full
  const std::string value = text.substr(kValue.size(), range - kValue.size());
  if (!is_number(value)) return "must be a number, got \"" + value + "\"";
  return (is_open ? "must be above 0" : "must be " + without_zeros(low) + " to " + without_zeros(high)) + ", got " +
         value;
}

/// The option that a message of the parser begins with: `--format: must be ...`, `KIND: must be ...`. Null for others.
const CLI::Option* option_of(const CLI::App* command, const std::string& message) {
  const std::size_t colon = message.find(": ");
  if (colon == std::string::npos) return nullptr;
  const std::string name = message.substr(0, colon);
  for (; command != nullptr; command = command->get_parent()) {
    if (const CLI::Option* option = command->get_option_no_throw(name)) return option;
  }
  return nullptr;
}

/// The words of `text` before and after `middle`; nothing if it has no `middle`.
std::optional<std::pair<std::string, std::string>> split_at(const std::string& text, const std::string& middle) {
  const std::size_t at = text.find(middle);
  if (at == std::string::npos) return std::nullopt;
  return std::pair(text.substr(0, at), text.substr(at + middle.size()));
}

/// `RUN: At least 2 required but received 1`, `--set: 1 required PATH=VALUE missing`: what is wrong with the number of
/// values of an option. "" if `problem` is another.
std::string wrong_count(const std::string& command, const std::string& name, const std::string& problem) {
  if (const auto least = split_at(problem, " required but received ")) {
    const std::string number = least->first.substr(least->first.rfind(' ') + 1);
    if (least->first.starts_with("At least "))
      return command + " needs at least " + number + " values for " + name + ", got " + least->second;
    return name + " accepts " + (number == "1" ? "one value" : "at most " + number + " values") + ", got " +
           least->second;
  }
  const std::string missing = " missing";
  const auto none = problem.ends_with(missing) ? split_at(problem, " required ") : std::nullopt;
  if (!none) return "";
  std::string type = none->second.substr(0, none->second.size() - missing.size());
  type = type.substr(0, type.find(':'));  // what follows describes the check
  return name + " needs " + (none->first == "1" ? type : "at least " + none->first + " values");
}

/// A known value that is close to the refused one; "" if none is.
std::string meant_value(const CLI::Option& option, const std::string& problem) {
  const auto given = split_at(problem, ", got \"");
  return given ? core::closest(given->second.substr(0, given->second.size() - 1), offered(option)) : "";
}

}  // namespace

void refuse(CLI::App& app, const CLI::ParseError& error, Session& session) {
  // The parser may have given up before it took the flag.
  const auto& words = session.command_line;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const bool is_json = words[i] == "--log-format=json" || (words[i] == "json" && words[i - 1] == "--log-format");
    if (is_json) session.log_format = "json";
  }
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) return refuse_extras(app, session);
  CLI::App* command = chosen_command(app);
  const std::string help = "see `" + full_name(command) + " --help`";
  const std::string message = error.what();
  const std::string required = " is required";
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && message.ends_with(required))
    return session.fail(full_name(command) + " needs " + message.substr(0, message.size() - required.size()), help);
  if (const auto flags = split_at(message, " excludes "))
    return session.fail(flags->first + " and " + flags->second + " are mutually exclusive", "keep one of them");
  // `Could not convert: --steps = abc`
  static const std::string kConvert = "Could not convert: ";
  if (message.starts_with(kConvert)) {
    const auto value = split_at(message.substr(kConvert.size()), " = ");
    if (!value) return session.fail(message.substr(kConvert.size()) + " must be a number, got \"\"", help);
    const bool has_fraction = is_number(value->second);  // or too many digits
    return session.fail(
        value->first + " must be " + (has_fraction ? "an integer" : "a number") + ", got \"" + value->second + "\"",
        help);
  }
  if (const CLI::Option* option = option_of(command, message)) {
    const std::string name = message.substr(0, message.find(": ")), problem = message.substr(name.size() + 2);
    const std::string count = wrong_count(full_name(command), name, problem);
    if (!count.empty()) return session.fail(count, help);
    const std::string near = meant_value(*option, problem);
    return session.fail(name + " " + requirement(problem), near.empty() ? help : "did you mean \"" + near + "\"?");
  }
  session.fail(lower_first(message), help);
}

}  // namespace runner::cli

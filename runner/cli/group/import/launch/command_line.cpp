#include "runner/cli/group/import/launch/command_line.h"

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runner/cli/group/import/launch/estimate_command.h"
#include "runner/cli/group/import/launch/factory_variables.h"
#include "runner/cli/group/import/launch/foreign_file.h"
#include "runner/cli/group/import/launch/launcher.h"
#include "runner/cli/group/import/launch/visible_gpus.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
#include "runner/words/table.h"

namespace runner::cli {
namespace {

using core::Node;

using Word = ShellWord;
using Words = std::vector<Word>;

/// What a script starts.
struct Command {
  Words words;
  std::map<std::string, Word> environment;  ///< exported before, or written before the program
};

bool is_name_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// Takes a script apart into commands, as far as people write them around a training.
class Shell {
 public:
  explicit Shell(const std::string& text) : text_(text) {}

  /// A value that only running the script would tell.
  struct Unknown {
    int line;
    std::string message, hint;
  };
  const std::vector<Unknown>& unknown() const { return unknown_; }

  std::vector<Command> commands() {
    while (at_ < text_.size()) step();
    end_command();
    return std::move(commands_);
  }

 private:
  char peek(std::size_t ahead = 1) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  void step() {
    const char c = text_[at_];
    if (c == '\\' && (peek() == '\n' || (peek() == '\r' && peek(2) == '\n'))) {
      at_ += peek() == '\r' ? 3 : 2;
      ++line_;
    } else if (c == '\\') {
      add(peek());
      at_ += 2;
    } else if (c == '\'') {
      quoted_plainly();
    } else if (c == '"') {
      quoted();
    } else if (c == '$') {
      variable(/*is_quoted=*/false);
    } else if (c == '`') {
      output_of(at_ + 1, std::min(text_.find('`', at_ + 1), text_.size()));
    } else if (c == '#' && !open_) {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (c == '\n' || c == ';' || c == '|' || c == '&' || (c == ')' && in_array_)) {
      operator_at(c);
    } else if (c == '(' && open_ && word_.text.ends_with('=')) {
      begin_array();
    } else if (c == '>' || c == '<') {
      redirection();
    } else if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      end_word();
      ++at_;
    } else {
      add(c);
      ++at_;
    }
  }

  void operator_at(char c) {
    end_word();
    if (c == '\n') ++line_;
    ++at_;
    if (in_array_ && c == '\n') return;
    if (c == ')') {
      in_array_ = false;
      arrays_[array_] = std::move(command_);
      command_.clear();
      return;
    }
    const std::string first = command_.empty() ? "" : command_.front().text;
    end_command();
    const bool is_double = (c == '&' || c == '|') && at_ < text_.size() && text_[at_] == c;
    if (is_double) ++at_;
    const bool tests = first == "[" || first == "[[" || first == "test" || is_behind_condition_;
    is_behind_condition_ = is_double && (c == '|' || tests);
  }

  void begin_array() {
    array_ = word_.text.substr(0, word_.text.size() - 1);
    word_ = {};
    open_ = false;
    command_.clear();
    in_array_ = true;
    ++at_;
  }

  /// `2>&1`, `> log.txt`: the target is no argument.
  void redirection() {
    const bool numbered = !word_.text.empty() && std::all_of(word_.text.begin(), word_.text.end(), [](char c) {
      return std::isdigit(static_cast<unsigned char>(c)) != 0;
    });
    if (numbered) {
      word_ = {};
      open_ = false;
    }
    end_word();
    while (at_ < text_.size() && std::string_view("<>&").find(text_[at_]) != std::string_view::npos) ++at_;
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
    while (at_ < text_.size() && std::string_view(" \t\r\n;|&").find(text_[at_]) == std::string_view::npos) ++at_;
  }

  void quoted_plainly() {
    open();
    for (++at_; at_ < text_.size() && text_[at_] != '\''; ++at_) add(text_[at_]);
    ++at_;
  }

  void quoted() {
    open();
    for (++at_; at_ < text_.size() && text_[at_] != '"';) {
      if (text_[at_] == '$') {
        variable(/*is_quoted=*/true);
      } else if (text_[at_] == '`') {
        output_of(at_ + 1, std::min(text_.find('`', at_ + 1), text_.size()));
      } else if (text_[at_] == '\\' && std::string_view("\"\\$`\n").find(peek()) != std::string_view::npos) {
        if (peek() != '\n') add(peek());
        at_ += 2;
      } else {
        add(text_[at_++]);
      }
    }
    ++at_;
  }

  /// `$(COMMAND)` or `COMMAND` in backticks, up to its closing character.
  void output_of(std::size_t begin, std::size_t end) {
    open();
    const std::string command = core::escape_for_terminal(text_.substr(begin, end - begin));
    unknown_.push_back(
        {line_, "the script runs `" + command + "` for a value, and an import runs nothing", "write the value"});
    line_ += static_cast<int>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(begin),
                                         text_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
    word_.text += "?";
    at_ = std::min(end + 1, text_.size());
  }

  /// The parenthesis that closes the one at `at`; the end where none does.
  std::size_t closing(std::size_t at) const {
    for (int depth = 0; at < text_.size(); ++at) {
      if (text_[at] == '(') ++depth;
      if (text_[at] == ')' && --depth == 0) return at;
    }
    return text_.size();
  }

  /// The value of a variable: what is not quoted falls into words.
  void add_value(const std::string& value, bool is_quoted) {
    for (const char c : value) {
      if (!is_quoted && std::isspace(static_cast<unsigned char>(c)) != 0) {
        end_word();
      } else {
        add(c);
      }
    }
  }

  /// `$NAME`, `${NAME}`, `${NAME:-value}` and `${NAME[@]}`.
  void variable(bool is_quoted) {
    if (peek() == '(') return output_of(at_ + 2, closing(at_ + 1));
    std::size_t begin = at_ + 1;
    const bool braces = begin < text_.size() && text_[begin] == '{';
    if (braces) ++begin;
    std::size_t end = begin;
    while (end < text_.size() && is_name_character(text_[end])) ++end;
    const std::string name = text_.substr(begin, end - begin);
    std::string rest;
    std::size_t after = end;
    if (braces) {
      const std::size_t close = std::min(text_.find('}', end), text_.size());
      rest = text_.substr(end, close - end);
      after = std::min(close + 1, text_.size());
    }
    if (name.empty()) {
      const char next = peek();
      if (next == '@' || next == '*') {  // what the script is given: nothing is known of it
        at_ += 2;
        return;
      }
      add('$');
      at_ = begin;
      return;
    }
    at_ = after;
    if (rest == "[@]" || rest == "[*]") {
      open();
      word_.text = name;
      word_.is_array = true;
      return;
    }
    if (is_quoted) open();
    const auto value = values_.find(name);
    if (const auto set_at = uncertain_.find(name); set_at != uncertain_.end()) {
      unknown_.push_back({line_,
                          "what the script sets $" + name + " to, at line " + std::to_string(set_at->second) +
                              ", shows when it runs, and an import runs nothing",
                          "write its value in place of $" + name});
      add('?');
    } else if (value != values_.end()) {
      add_value(value->second, is_quoted);
    } else if (rest.starts_with(":-") || rest.starts_with("-")) {
      add_value(rest.substr(rest.find('-') + 1), is_quoted);
    } else {
      unknown_.push_back(
          {line_, "the script does not set $" + name, "write its value, or a line " + name + "=VALUE before"});
      add_value("${" + name + "}", /*is_quoted=*/true);
    }
  }

  void open() {
    if (!open_) word_.line = line_;
    open_ = true;
  }
  void add(char c) {
    open();
    if (c == '\n') ++line_;
    word_.text += c;
  }

  void end_word() {
    if (open_) command_.push_back(std::move(word_));
    word_ = {};
    open_ = false;
  }

  void end_command() {
    end_word();
    take_keywords();
    take_command();
    unknown_before_ = unknown_.size();
  }

  void take_command() {
    if (command_.empty()) return;
    if (assigns()) {
      command_.clear();
      return;
    }
    std::map<std::string, Word> environment = exported_;
    while (is_assignment(command_.front().text)) {
      Word& word = command_.front();
      const std::size_t equals = word.text.find('=');
      environment[word.text.substr(0, equals)] = {.text = word.text.substr(equals + 1), .line = word.line};
      command_.erase(command_.begin());
    }
    Words whole;
    for (Word& word : command_) {
      const auto array = arrays_.find(word.text);
      if (word.is_array && array != arrays_.end()) {
        whole.insert(whole.end(), array->second.begin(), array->second.end());
      } else {
        whole.push_back(std::move(word));
      }
    }
    commands_.push_back({std::move(whole), std::move(environment)});
    command_.clear();
  }

  /// Leaves out what a command of a condition or a loop begins with; a loop's variable has no one value.
  void take_keywords() {
    while (!command_.empty() && !command_.front().is_array) {
      const std::string word = command_.front().text;
      const bool is_loop = word == "for" || word == "select";
      if (word == "if" || word == "while" || word == "until" || word == "case" || is_loop) {
        ++depth_;
        if (is_loop && command_.size() > 1) uncertain_[command_[1].text] = command_[1].line;
      } else if (word == "fi" || word == "done" || word == "esac") {
        depth_ = std::max(0, depth_ - 1);
      } else if (word != "then" && word != "elif" && word != "else" && word != "do" && word != "{" && word != "}") {
        return;
      }
      command_.erase(command_.begin());
      if (word == "case" || is_loop) command_.clear();
    }
  }

  static bool is_assignment(const std::string& word) {
    const std::size_t equals = word.find('=');
    return equals != std::string::npos && equals > 0 && std::isdigit(static_cast<unsigned char>(word[0])) == 0 &&
           std::all_of(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(equals), is_name_character);
  }

  /// Of `NAME=value`, `export NAME=value`.
  bool assigns() {
    const bool exports = command_.front().text == "export";
    const std::size_t first = exports || command_.front().text == "set" ? 1 : 0;
    for (std::size_t i = first; i < command_.size(); ++i) {
      const std::string& word = command_[i].text;
      if (!is_assignment(word)) return false;
      const std::size_t equals = word.find('=');
      const std::string name = word.substr(0, equals);
      values_[name] = word.substr(equals + 1);
      if (depth_ > 0 || is_behind_condition_ || unknown_.size() > unknown_before_) {
        uncertain_[name] = command_[i].line;
      } else {
        uncertain_.erase(name);
      }
      if (exports) exported_[word.substr(0, equals)] = {.text = word.substr(equals + 1), .line = command_[i].line};
    }
    return true;
  }

  const std::string& text_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool open_ = false, in_array_ = false;
  Word word_;
  Words command_;
  std::string array_;
  std::map<std::string, std::string, std::less<>> values_;
  std::map<std::string, Words, std::less<>> arrays_;
  std::map<std::string, Word> exported_;
  std::vector<Command> commands_;
  int depth_ = 0;                                      ///< of conditions and loops
  bool is_behind_condition_ = false;                   ///< the command is behind || or behind a test and &&
  std::map<std::string, int, std::less<>> uncertain_;  ///< variables, and the lines that may set them
  std::vector<Unknown> unknown_;
  std::size_t unknown_before_ = 0;  ///< those of commands before the one at hand
};

bool is_option(const Word& word) { return word.text.starts_with("--") && word.text.size() > 2; }

bool is_any_of(const std::string& text, std::initializer_list<const char*> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

std::string program_of(const Word& word) { return word.text.substr(word.text.rfind('/') + 1); }

/// The programs that train, by a command behind their name; and their commands that do not.
constexpr std::initializer_list<const char*> kPrograms = {"trl", "llamafactory-cli", "lmf", "axolotl"};
constexpr std::initializer_list<const char*> kOtherCommands = {"api",        "chat",       "delinearize-llama4",
                                                               "env",        "eval",       "evaluate",
                                                               "export",     "fetch",      "help",
                                                               "inference",  "merge-lora", "merge-sharded-fsdp-weights",
                                                               "preprocess", "quantize",   "vllm-serve",
                                                               "version",    "webchat",    "webui"};
/// Options of a training, whatever the script is called.
constexpr std::initializer_list<const char*> kOfTraining = {"--model_name_or_path", "--per_device_train_batch_size",
                                                            "--num_train_epochs",   "--learning_rate",
                                                            "--train_file",         "--dataset_name"};

/// `package.module`, and no number, version or file of arguments.
bool is_dotted_name(const std::string& text) {
  const bool is_name = std::all_of(text.begin(), text.end(), [](char c) { return is_name_character(c) || c == '.'; });
  return is_name && text.find('.') != std::string::npos && std::isdigit(static_cast<unsigned char>(text[0])) == 0;
}

/// A file of arguments.
bool names_arguments(const std::string& text) {
  return text.ends_with(".yaml") || text.ends_with(".yml") || text.ends_with(".json");
}

/// The module that a launcher or Python starts, from the word behind `-m` on: flags of the launcher may stand between.
Words::const_iterator module_of(Words::const_iterator word, Words::const_iterator end) {
  bool may_be_value = false;
  for (; word != end; ++word) {
    const bool is_flag = word->text.starts_with("-");
    if (!is_flag && !names_arguments(word->text) && (!may_be_value || is_dotted_name(word->text))) return word;
    may_be_value = is_flag && word->text.find('=') == std::string::npos;
  }
  return end;
}

/// The script of a command, its module, or the word behind a program that trains; the end for none.
Words::const_iterator script_of(const Words& command) {
  bool is_launched = false;
  for (auto word = command.begin(); word != command.end(); ++word) {
    if (word->text.ends_with(".py")) return word;
    if (is_any_of(word->text, {"-m", "--module"})) {
      const auto module = module_of(std::next(word), command.end());
      if (module == command.end()) return module;
      const bool is_launcher = is_any_of(module->text, {"torch.distributed.run", "torch.distributed.launch",
                                                        "accelerate.commands.launch", "deepspeed.launcher.runner"});
      const auto is_of = [&](const char* package) { return module->text.starts_with(package); };
      if (!is_launcher) {  // Python alone starts much that does not train
        const auto next = std::next(module);
        const bool has_command = is_of("llamafactory.") && next != command.end() && !is_option(*next);
        const bool trains = is_launched || is_of("trl.") || is_of("llamafactory.") || is_of("axolotl.");
        return !trains ? command.end() : has_command ? next : module;
      }
      is_launched = true;
      word = module;
      continue;
    }
    const std::string program = program_of(*word);
    is_launched = is_launched || is_any_of(program, {"accelerate", "accelerate-launch", "torchrun", "deepspeed"});
    if (is_any_of(program, kPrograms) && std::next(word) != command.end()) return std::next(word);
    if (is_option(*word) && word == command.begin()) return word;  // the arguments alone
  }
  return command.end();
}

/// What TRL's scripts are called by, whose `--config` is a file of arguments.
constexpr const char* kOfTrl[] = {"sft", "dpo", "cpo", "orpo", "kto", "reward", "grpo", "rloo", "ppo", "prm"};

bool is_launcher(const Word& word) {
  return is_any_of(program_of(word),
                   {"accelerate", "accelerate-launch", "torchrun", "deepspeed", "torch.distributed.run",
                    "torch.distributed.launch", "accelerate.commands.launch", "deepspeed.launcher.runner"});
}

/// Whether what stands in front of the script starts a process for each GPU that it sees, unless it is told a number.
bool starts_by_gpus(std::span<const Word> before) {
  return std::any_of(before.begin(), before.end(), [](const Word& word) {
    const std::string program = program_of(word);
    const bool is_torchrun = is_any_of(program, {"torchrun", "torch.distributed.run", "torch.distributed.launch"});
    return (is_launcher(word) && !is_torchrun) || is_any_of(program, kPrograms);
  });
}

/// Whether LLaMA-Factory's own launcher starts a training.
bool is_factory_training(const Words& before, const Word& script) {
  return script.text == "train" && !before.empty() &&
         is_any_of(program_of(before.back()), {"llamafactory-cli", "lmf", "llamafactory.cli"});
}

/// Whether a command says more than the script: options, a file of arguments or a launcher.
bool has_arguments(const Words& command, Words::const_iterator script) {
  const bool is_launched = std::any_of(command.begin(), script, is_launcher);
  const bool is_started = is_launched || !script->text.ends_with(".py") ||
                          (script != command.begin() && program_of(command.front()).starts_with("python"));
  return is_launched || std::any_of(script, command.end(), [&](const Word& word) {
           return is_option(word) || (is_started && names_arguments(word.text));
         });
}

/// Whether what a command starts is a training for sure.
bool trains(const Words& command, Words::const_iterator script) {
  if (!script->text.ends_with(".py") && script != command.begin()) {
    const std::string before = program_of(*std::prev(script));
    if (is_any_of(before, kPrograms) || before == "llamafactory.cli") return !is_any_of(script->text, kOtherCommands);
    if (script->text == "axolotl.cli.train" || script->text.starts_with("trl.")) return true;
  }
  return std::any_of(script, command.end(), [](const Word& word) {
    std::string key = word.text.substr(0, word.text.find('='));
    std::replace(key.begin() + (key.starts_with("--") ? 2 : 0), key.end(), '-', '_');
    return is_any_of(key, kOfTraining);
  });
}

/// Whether `--config` of a script is a file of arguments, as of TRL's scripts.
bool is_of_trl(const std::string& script) {
  const auto has = [&](const char* word) { return script.find(word) != std::string::npos; };
  return std::any_of(std::begin(kOfTrl), std::end(kOfTrl), has);
}

class Reader {
 public:
  Reader(const std::shared_ptr<const core::Source>& source, core::Diagnostics& diagnostics)
      : source_(source), diagnostics_(diagnostics) {}

  Node read(const Command& command, Words::const_iterator script) {
    const Words& words = command.words;
    Node config = Node::mapping(at(words.front()));
    auto word = script;
    if (!is_option(*script)) {
      script_ = script->text.substr(script->text.rfind('/') + 1);
      config.set(kScript, Node::string(script_, at(*script)), at(*script));
      ++word;
    }
    Words started = {words.begin(), script};
    if (is_factory_training(started, *script)) {
      const Words launched = factory_launcher(command.environment);
      started.insert(started.end(), launched.begin(), launched.end());
    }
    Node launcher = read_launcher(started, source_, diagnostics_);
    add_environment(command.environment, starts_by_gpus({words.begin(), script}), launcher);
    if (!launcher.entries().empty()) config.set(kLauncher, std::move(launcher), at(words.front()));
    const auto options = std::find_if(word, words.end(), is_option);
    is_alone_ = options == words.end() && std::distance(script, options) == 2;
    for (; word != options; ++word) take_plain(*word, config);
    while (word != words.end()) word = take(word, words.end(), config);
    for (const Node::Entry& entry : of_files_.entries()) {
      if (config.find(entry.key) == nullptr) config.set(entry.key, entry.value, entry.key_location);
    }
    return config;
  }

 private:
  core::Location at(const Word& word) const {
    core::Location location;
    location.source = source_;
    location.line = word.line;
    location.column = 1;
    return location;
  }

  /// What Accelerate and CUDA read of the environment; the launcher's flags go before.
  void add_environment(const std::map<std::string, Word>& environment, bool counts_gpus, Node& launcher) {
    constexpr std::string_view kPrefix = "ACCELERATE_";
    for (const auto& [name, word] : environment) {
      if (name == "CUDA_VISIBLE_DEVICES") take_visible_gpus(word.text, counts_gpus, at(word), launcher, diagnostics_);
      if (!name.starts_with(kPrefix)) continue;
      const std::string key = core::lower(name.substr(kPrefix.size()));
      if (words::find(words::table_of("accelerate").words, key) == nullptr) {
        diagnostics_.notice(at(word), "$" + name + " is not read", "write what it sets into the recipe");
        continue;
      }
      if (launcher.find(key) == nullptr) launcher.set(key, value_of_argument(source_, word.text, at(word)), at(word));
      if (!launcher.location().known()) launcher.set_location(at(word));
    }
  }

  /// A file of arguments, or KEY=VALUE, which goes before what the file says.
  void take_plain(const Word& word, Node& config) {
    const std::size_t equals = word.text.find('=');
    if (equals != std::string::npos) {
      config.set(word.text.substr(0, equals), value_of_argument(source_, word.text.substr(equals + 1), at(word)),
                 at(word));
    } else if (names_arguments(word.text)) {
      // Scripts of Transformers read one that is the only argument.
      if (script_.ends_with(".py") && !is_alone_) return refuse_file(at(word), word.text);
      add_file(Node::string(word.text, at(word)), "the file of arguments");
    }
  }

  void refuse_file(const core::Location& location, const std::string& what) {
    diagnostics_.error(location, core::escape_for_terminal(what) + " is read by the script in its own way",
                       "write its arguments into the command line");
  }

  void add_file(const Node& path, const std::string& argument) {
    const auto file = read_named_file(path, argument, diagnostics_);
    if (!file) return;
    for (const Node::Entry& entry : file->entries()) of_files_.set(entry.key, entry.value, entry.key_location);
  }

  /// One option with its values.
  Words::const_iterator take(Words::const_iterator word, Words::const_iterator end, Node& config) {
    const core::Location location = at(*word);
    std::string key = word->text.substr(2);
    std::vector<std::string> values;
    if (const std::size_t equals = key.find('='); equals != std::string::npos) {
      values = {key.substr(equals + 1)};
      key.resize(equals);
    }
    for (++word; word != end && !is_option(*word); ++word) values.push_back(word->text);
    std::replace(key.begin(), key.end(), '-', '_');
    if (key == "config" || key == "config_file") {
      if (is_of_trl(script_) && values.size() == 1) {
        add_file(Node::string(values[0], location), "--" + key);
      } else {
        refuse_file(location, "--" + key);
      }
      return word;
    }
    const bool negated = key.starts_with("no_") && key != "no_cuda" && values.empty();
    if (negated) key.erase(0, 3);
    Node value = Node::boolean(!negated, location);
    if (values.size() == 1) value = value_of_argument(source_, values[0], location);
    if (values.size() > 1) {
      value = Node::sequence();
      for (const std::string& one : values) value.items().push_back(value_of_argument(source_, one, location));
    }
    // Scripts of DeepSpeed have a switch and a file, those of the Trainer a flag with the file.
    if (key == "deepspeed_config") key = "deepspeed";
    if (key == "deepspeed" && value.is_bool() && config.find(key) != nullptr) return word;
    config.set(key, std::move(value), location);
    return word;
  }

  const std::shared_ptr<const core::Source>& source_;
  core::Diagnostics& diagnostics_;
  std::string script_;
  bool is_alone_ = false;            ///< there is one argument
  Node of_files_ = Node::mapping();  ///< arguments that the command names the files of
};

/// The command that trains: one that does for sure, else the first that could. Null for none; an error for several.
const Command* command_of(const std::vector<Command>& commands, const std::shared_ptr<const core::Source>& source,
                          core::Diagnostics& diagnostics) {
  const Command *sure = nullptr, *first = nullptr;
  for (const Command& command : commands) {
    const auto script = script_of(command.words);
    if (script == command.words.end()) continue;
    const bool is_sure = trains(command.words, script);
    if (first == nullptr && (is_sure || has_arguments(command.words, script))) first = &command;
    if (is_sure && sure != nullptr) {
      core::Location at;
      at.source = source;
      at.line = command.words.front().line;
      at.column = 1;
      diagnostics.error(
          at, "a second training begins here: the first one is at line " + std::to_string(sure->words.front().line),
          "write each command into a file of its own, and import them one by one");
      return sure;
    }
    if (is_sure) sure = &command;
  }
  return sure != nullptr ? sure : first;
}

}  // namespace

std::optional<Node> read_command_line(const std::shared_ptr<const core::Source>& source,
                                      core::Diagnostics& diagnostics) {
  Shell shell(source->text);
  const std::vector<Command> commands = shell.commands();
  const Command* command = command_of(commands, source, diagnostics);
  if (command == nullptr) {
    for (const Command& other : commands) refuse_estimate(other.words, source, diagnostics);
    return std::nullopt;
  }
  for (const Shell::Unknown& unknown : shell.unknown()) {
    if (unknown.line < command->words.front().line || unknown.line > command->words.back().line) continue;
    core::Location at;
    at.source = source;
    at.line = unknown.line;
    at.column = 1;
    diagnostics.error(at, unknown.message, unknown.hint);
  }
  return Reader(source, diagnostics).read(*command, script_of(command->words));
}

}  // namespace runner::cli

#include "runner/cli/generation/chat.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "generated/section/generation.h"
#include "runner/cli/generation/chat_history.h"
#include "runner/cli/generation/conversation.h"
#include "runner/cli/generation/generated_text.h"
#include "runner/cli/generation/interrupt_watch.h"
#include "runner/cli/generation/line_reader.h"
#include "runner/cli/generation/model_source.h"
#include "runner/cli/prediction/output_file.h"
#include "runner/core/error.h"
#include "runner/core/platform/files.h"
#include "runner/core/text/suggest.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
#include "runner/resolve/recipe.h"
#include "runner/terminal/text.h"

namespace runner::cli {
namespace {

constexpr const char* kBlanks = " \t\r\n";
constexpr std::int64_t kFractionForAnswer = 4;  // of the positions: what an answer gets before turns are left out
constexpr int kPatience = 2;                    // a third Ctrl-C ends the program, if an answer does not end

/// Shows an answer and keeps it.
class Answer final : public engine::GenerationSink {
 public:
  explicit Answer(bool terminal) : file_(""), stream_(file_, terminal) {}

  void piece(std::int64_t prompt, std::int64_t sample, std::string_view text) override {
    stream_.piece(prompt, sample, text);
  }
  void done(const engine::Generated& generated) override {
    text_ = generated.text;
    finish_reason_ = generated.finish_reason;
    if (text_.empty()) stream_.piece(0, 0, "\n");  // a line for each answer
    stream_.done(generated);
  }

  const std::string& text() const { return text_; }
  const std::string& finish_reason() const { return finish_reason_; }

 private:
  OutputFile file_;
  TextStream stream_;
  std::string text_, finish_reason_;
};

class Chat {
 public:
  struct Options {
    bool interactive = false;  ///< lines come from a terminal
    bool draws = false;        ///< generation.do_sample
    std::int64_t max_new_tokens = 0;
  };

  Chat(Session& session, engine::TextGenerator& generator, LineReader& lines, const Options& options)
      : session_(session), generator_(generator), lines_(lines), options_(options) {}

  /// Begins a conversation. False: the message cannot be used, which was told.
  bool begin(const std::string& system) {
    Conversation conversation(system);
    if (!system.empty() && !fits(conversation.prompt("?"), "the system message")) return false;
    conversation_ = std::move(conversation);
    told_of_left_out_ = false;
    return true;
  }

  void run() {
    std::string line;
    while (!ended_) {
      switch (read_message(lines_, line)) {
        case LineReader::Got::kEnd: return;
        case LineReader::Got::kInterrupt: break;
        case LineReader::Got::kTooLong:
          session_.fail("the message is longer than " + core::with_commas(kMessageBytesMax) + " bytes", "shorten it");
          break;
        case LineReader::Got::kLine: take(std::string(core::trimmed(line, kBlanks)), line); break;
      }
    }
  }

 private:
  struct Command {
    const char *word, *argument, *help;
    void (Chat::*perform)(const std::string& argument);
  };
  static const Command kCommands[6];
  friend std::string runner::cli::chat_commands_help();

  void take(const std::string& message, const std::string& line) {
    if (message.empty()) return;
    if (core::find_invalid_utf8(message) != std::string::npos) {
      return session_.fail("the line is not UTF-8", "convert it");
    }
    lines_.remember(message);
    if (line.starts_with('/')) return obey(message);
    if (const auto answer = answer_to(message)) conversation_.add({message, *answer});
  }

  void obey(const std::string& line) {
    const std::size_t end = std::min(line.find_first_of(kBlanks), line.size());
    const std::string word = line.substr(0, end);
    const std::string argument(core::trimmed(std::string_view(line).substr(end), kBlanks));
    std::vector<std::string> words;
    for (const Command& command : kCommands) {
      words.push_back(command.word);
      if (command.word != word) continue;
      if (*command.argument != '\0' || argument.empty()) return (this->*command.perform)(argument);
      return session_.fail(word + " takes nothing behind it, got " + core::quote(argument));
    }
    const std::string meant = core::closest(word, words);
    session_.fail("no command is called " + core::quote(word),
                  (meant.empty() ? "/help lists them" : "did you mean " + meant + "? /help lists them all") +
                      "; a message that begins with / needs a blank before it");
  }

  void help(const std::string&) { std::fputs(chat_commands_help().c_str(), stderr); }

  void clear(const std::string&) {
    conversation_ = Conversation(conversation_.system());
    told_of_left_out_ = false;
    notice("the conversation begins again");
  }

  void set_system(const std::string& text) {
    if (begin(text)) notice(text.empty() ? "a new conversation, without a system message" : "a new conversation");
  }

  void retry(const std::string&) {
    std::optional<Turn> last = conversation_.take_last();
    if (!last) return session_.fail("there is no answer yet to make again");
    if (!options_.draws) {
      notice("without do_sample each answer is the most probable one: start with --do-sample for others");
    }
    if (auto answer = answer_to(last->question)) last->answer = *std::move(answer);
    conversation_.add(*std::move(last));
  }

  void save(const std::string& path) {
    if (!path.ends_with(".jsonl")) {
      return session_.fail(path.empty() ? "/save needs a file" : "/save writes a .jsonl file, got " + core::quote(path),
                           "write /save FILE.jsonl");
    }
    if (conversation_.empty()) return session_.fail("there is no answer yet to save");
    struct stat ignored = {};
    if (lstat(path.c_str(), &ignored) == 0) return session_.fail(path + " exists already", "name another file");
    const auto written = core::write_output(path, conversation_.json() + "\n");
    if (!written) return session_.fail(written.failure().message, written.failure().hint);
    notice("wrote " + core::with_commas(static_cast<std::int64_t>(conversation_.message_count())) + " messages to " +
           path);
  }

  void exit(const std::string&) { ended_ = true; }

  /// Nothing: there is none to keep, which was told.
  std::optional<std::string> answer_to(const std::string& message) {
    const auto prompt = prompt_for(message);
    if (!prompt) return std::nullopt;
    std::optional<InterruptWatch> watch;
    if (!options_.interactive) watch.emplace();
    InterruptWatch::forget();  // what came between prompt and answer
    Answer answer(isatty(STDOUT_FILENO) == 1);
    core::Diagnostics diagnostics;
    const auto report = generator_.generate({*prompt}, answer, diagnostics);
    session_.show(diagnostics);
    if (!report) {
      session_.exit_code = core::kExitUsage;
      return std::nullopt;
    }
    // "": before it had begun.
    const bool interrupted = answer.finish_reason() == "interrupted" || answer.finish_reason().empty();
    if (interrupted && !options_.interactive) {
      session_.exit_code = kInterrupted;
      ended_ = true;
    }
    if (options_.interactive) tell(*report, answer.finish_reason());
    if (!interrupted || !answer.text().empty()) return answer.text();
    notice("nothing was answered: the message is not kept");
    return std::nullopt;
  }

  /// The messages to answer, without the oldest turns where they leave too little room.
  std::optional<engine::Prompt> prompt_for(const std::string& message) {
    engine::Prompt prompt = conversation_.prompt(message);
    std::optional<engine::PromptSize> size = measure(prompt);
    if (!size) return std::nullopt;
    const std::int64_t room =
        size->positions -
        std::max<std::int64_t>(1, std::min(options_.max_new_tokens, size->positions / kFractionForAnswer));
    if (size->positions <= 0 || size->tokens <= room) return prompt;
    if (!fits(conversation_.prompt_alone(message), "the message")) return std::nullopt;
    while (size && size->tokens > room && conversation_.leave_out_oldest()) {
      if (!std::exchange(told_of_left_out_, true)) {
        notice("the conversation has become longer than the " + core::with_commas(size->positions) +
               " tokens that the model reads: its oldest turns are left out");
      }
      prompt = conversation_.prompt(message);
      size = measure(prompt);
    }
    return size ? std::make_optional(std::move(prompt)) : std::nullopt;
  }

  std::optional<engine::PromptSize> measure(const engine::Prompt& prompt) {
    core::Diagnostics diagnostics;
    const auto size = generator_.measure(prompt, diagnostics);
    session_.show(diagnostics);
    if (!size) session_.exit_code = core::kExitUsage;
    return size;
  }

  /// Whether a prompt that cannot be shorter leaves room for an answer; otherwise that is told.
  bool fits(const engine::Prompt& prompt, const std::string& name) {
    const auto size = measure(prompt);
    if (!size) return false;
    if (size->positions <= 0 || size->tokens < size->positions) return true;
    session_.fail(name + " is too long: with it the prompt has " + core::with_commas(size->tokens) +
                      " tokens, and the model reads " + core::with_commas(size->positions) + " with the answer",
                  "shorten it");
    return false;
  }

  void notice(const std::string& message) const {
    core::Diagnostics diagnostics;
    diagnostics.notice({}, message);
    session_.show(diagnostics);
  }

  void tell(const engine::GenerationReport& report, const std::string& finish_reason) const {
    if (session_.quiet || isatty(STDERR_FILENO) != 1) return;
    terminal::Terminal terminal;
    terminal.color = session_.color;
    std::string line = core::counted_large(report.new_tokens, "token", "tokens") +
                       rate_text(report.new_tokens, report.prefill_seconds + report.decode_seconds);
    if (finish_reason == "length") line += ", ended by max_new_tokens or the model's last position";
    if (finish_reason == "interrupted") line += ", interrupted";
    std::fputs((terminal::painted(line, terminal::Paint::kDim, terminal) + "\n").c_str(), stderr);
  }

  Session& session_;
  engine::TextGenerator& generator_;
  LineReader& lines_;
  Options options_;
  Conversation conversation_;
  bool told_of_left_out_ = false, ended_ = false;
};

const Chat::Command Chat::kCommands[6] = {
    {"/help", "", "List the commands", &Chat::help},
    {"/clear", "", "Forget the conversation, and keep the system message", &Chat::clear},
    {"/system", "TEXT", "Begin a new conversation with this system message; without TEXT: with none",
     &Chat::set_system},
    {"/retry", "", "Answer the last message again; with do_sample by another draw", &Chat::retry},
    {"/save", "FILE.jsonl", "Write the conversation as a record of a jsonl data set", &Chat::save},
    {"/exit", "", "End the chat, as Ctrl-D does", &Chat::exit},
};

/// Text of a message on the command line.
bool is_text(Session& session, const std::string& system) {
  if (core::find_invalid_utf8(system) == std::string::npos) return true;
  session.fail("--system " + core::quote(system) + " is not UTF-8", "convert it");
  return false;
}

/// The terminal that lines are edited on; null when they come from elsewhere, or nothing would show them.
std::FILE* terminal_for_editing() {
  if (isatty(STDIN_FILENO) != 1) return nullptr;
  if (isatty(STDOUT_FILENO) == 1) return stdout;
  return isatty(STDERR_FILENO) == 1 ? stderr : nullptr;
}

void greet(const Session& session) {
  if (session.quiet) return;
  terminal::Terminal terminal;
  terminal.color = session.color;
  const std::string line = terminal::painted("/help lists the commands, Ctrl-C ends an answer, Ctrl-D ends the chat",
                                             terminal::Paint::kDim, terminal);
  std::fputs((line + "\n").c_str(), stderr);
}

}  // namespace

std::string chat_commands_help() {
  std::string text;
  for (const Chat::Command& command : Chat::kCommands) {
    std::string line = "  " + std::string(command.word) + " " + command.argument;
    line.resize(20, ' ');
    text += line + command.help + "\n";
  }
  return text;
}

void chat(Session& session, ChatFlags& flags) {
  if (!is_text(session, flags.system)) return;
  engine::GenerateRequest& request = flags.request;
  request.command = "chat";
  request.chat = true;
  request.batch_size = 1;
  request.interrupted = InterruptWatch::received;
  auto recipe = load_model_recipe(session, flags.recipe, request,
                                  {{recipe::Override::Kind::kSet, "generation.num_return_sequences=1", "roux chat"}});
  if (!recipe) return;
  warn_of_idle_flags(session, *recipe);
  tell_one_process(*recipe, "a chat");
  engine::Engine* engine = engine_for(session, *recipe, request);
  if (engine == nullptr) return;
  core::Diagnostics diagnostics;
  const auto generator = engine->open_generator(*recipe, request, diagnostics);
  session.show(diagnostics);
  if (generator == nullptr) {
    session.exit_code = core::kExitUsage;
    return;
  }
  std::FILE* shown = terminal_for_editing();
  ChatHistory history(flags.no_history ? "" : ChatHistory::usual_path());
  const auto lines = shown == nullptr ? plain_lines() : edited_lines(shown, history);
  Chat chat(session, *generator, *lines,
            {shown != nullptr, recipe->generation->do_sample, recipe->generation->max_new_tokens});
  if (!chat.begin(flags.system)) return;
  std::optional<InterruptWatch> watch;
  if (shown != nullptr) {
    watch.emplace(kPatience);
    greet(session);
  }
  chat.run();
  if (shown != nullptr) session.exit_code = core::kExitDone;
  if (history.problem().empty()) return;
  core::Diagnostics told;
  told.warning({}, "the lines are not kept for the next chat: " + history.problem(), "--no-history keeps none");
  session.show(told);
}

}  // namespace runner::cli

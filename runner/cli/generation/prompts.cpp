#include "runner/cli/generation/prompts.h"

#include <memory>
#include <string_view>
#include <utility>

#include "runner/core/error.h"
#include "runner/core/json.h"
#include "runner/core/platform/files.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"

namespace runner::cli {
namespace {

using core::Node;
using engine::Prompt;

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::int64_t kFileBytesMax = 256 << 20;
constexpr std::size_t kPromptsMax = 1'000'000;
constexpr int kErrorsMax = 100;  // more have one cause: another kind of file
constexpr const char* kForms = "write {\"prompt\": \"...\"}, {\"text\": \"...\"}, or with --chat {\"messages\": [...]}";
constexpr const char* kMessage = "write {\"role\": \"user\", \"content\": \"...\"}";

/// The lines of one file as prompts; errors have the line's number.
class Reader {
 public:
  Reader(const PromptFlags& flags, std::string text, core::Diagnostics& diagnostics)
      : flags_(flags), diagnostics_(diagnostics) {
    auto source = std::make_shared<core::Source>();
    source->name = flags.file;
    source->text = std::move(text);
    source_ = std::move(source);
  }

  std::vector<Prompt> read() {
    const bool plain = flags_.file.ends_with(".txt");
    std::string_view rest = source_->text;
    while (!rest.empty() && diagnostics_.error_count() < kErrorsMax) {
      const std::size_t end = rest.find('\n');
      std::string_view line = rest.substr(0, end);
      if (line.ends_with('\r')) line.remove_suffix(1);
      rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
      ++line_;
      if (core::trimmed(line, " \t").empty()) continue;
      if (prompts_.size() == kPromptsMax) {
        error("more than " + core::with_commas(kPromptsMax) + " prompts", "split the file");
        break;
      }
      if (!plain) {
        add_object(line);
      } else if (core::find_invalid_utf8(line) != std::string_view::npos) {
        error("the line is not UTF-8", "convert the file");
      } else {
        prompts_.push_back({std::string(line), {}});
      }
    }
    return std::move(prompts_);
  }

 private:
  void error(const std::string& message, const std::string& hint) {
    diagnostics_.error({source_, line_, 1}, message, hint);
  }

  void add_object(std::string_view line) {
    const auto parsed = core::parse_json(line);
    if (!parsed) return error("the line is no record: " + parsed.failure().message, kForms);
    const Node& object = parsed.value();
    if (!object.is_mapping()) return error("the line is JSON, but not an object", kForms);
    const auto given = [&object](const char* name) {
      const Node* value = object.find(name);
      return value == nullptr || value->is_null() ? nullptr : value;
    };
    const Node *prompt = given("prompt"), *text = given("text"), *messages = given("messages");
    const int found = (prompt != nullptr ? 1 : 0) + (text != nullptr ? 1 : 0) + (messages != nullptr ? 1 : 0);
    if (found == 0) return error("the line has neither prompt nor text nor messages", kForms);
    if (found > 1) return error("the line has more than one of prompt, text and messages", "keep one of them");
    if (messages != nullptr) return add_messages(*messages);
    const Node& value = prompt != nullptr ? *prompt : *text;
    if (!value.is_string()) return error(std::string(prompt != nullptr ? "prompt" : "text") + " is not a text", kForms);
    prompts_.push_back({value.as_string(), {}});
  }

  void add_messages(const Node& messages) {
    if (!flags_.chat) return error("the line has messages, which only --chat turns into a prompt", "add --chat");
    if (!messages.is_sequence() || messages.items().empty()) return error("messages is not a list of messages", kForms);
    Prompt prompt;
    for (const Node& message : messages.items()) {
      const Node* role = message.is_mapping() ? message.find("role") : nullptr;
      const Node* content = message.is_mapping() ? message.find("content") : nullptr;
      const bool whole = role != nullptr && role->is_string() && content != nullptr && content->is_string();
      if (!whole) return error("a message needs the texts role and content", kMessage);
      const std::string& word = role->as_string();
      if (word != "system" && word != "user" && word != "assistant")
        return error("the role " + core::quote(word) + " is not known", "write system, user or assistant");
      prompt.messages.emplace_back(word, content->as_string());
    }
    if (!flags_.system.empty() && prompt.messages.front().first != "system")
      prompt.messages.emplace(prompt.messages.begin(), "system", flags_.system);
    prompts_.push_back(std::move(prompt));
  }

  const PromptFlags& flags_;
  core::Diagnostics& diagnostics_;
  std::shared_ptr<const core::Source> source_;
  std::vector<Prompt> prompts_;
  int line_ = 0;
};

std::optional<std::vector<Prompt>> read_prompt_file(Session& session, const PromptFlags& flags) {
  if (!flags.file.ends_with(".jsonl") && !flags.file.ends_with(".txt")) {
    session.fail("--prompts must name a .jsonl or a .txt file, got " + core::quote(flags.file),
                 "JSON lines have one object a prompt, a text file one line a prompt");
    return std::nullopt;
  }
  auto text = core::read_file(flags.file, kFileBytesMax);
  if (!text) {
    session.fail(text.failure().message, text.failure().hint);
    return std::nullopt;
  }
  std::string content = std::move(text).value();
  if (content.starts_with(kByteOrderMark)) content.erase(0, kByteOrderMark.size());
  core::Diagnostics diagnostics;
  std::vector<Prompt> prompts = Reader(flags, std::move(content), diagnostics).read();
  if (diagnostics.has_errors()) {
    session.show(diagnostics);
    session.exit_code = core::kExitUsage;
    return std::nullopt;
  }
  if (prompts.empty()) {
    session.fail(flags.file + " holds no prompt",
                 flags.file.ends_with(".txt") ? "write one prompt a line" : std::string(kForms));
    return std::nullopt;
  }
  return prompts;
}

}  // namespace

std::optional<std::vector<Prompt>> read_prompts(Session& session, const PromptFlags& flags) {
  if (!flags.system.empty() && !flags.chat) {
    session.fail("--system is a message of a conversation, which only --chat makes", "add --chat");
    return std::nullopt;
  }
  if (!flags.texts.empty() && !flags.file.empty()) {
    session.fail("--prompt and --prompts are mutually exclusive", "keep one of them");
    return std::nullopt;
  }
  if (!flags.file.empty()) return read_prompt_file(session, flags);
  if (flags.texts.empty()) {
    session.fail("roux generate needs a prompt", "add --prompt TEXT, or --prompts FILE.jsonl");
    return std::nullopt;
  }
  std::vector<Prompt> prompts;
  for (const std::string& text : flags.texts) {
    if (core::find_invalid_utf8(text) != std::string::npos) {
      session.fail("--prompt " + core::quote(text) + " is not UTF-8", "put it into a file, and name that by --prompts");
      return std::nullopt;
    }
    prompts.push_back({text, {}});
  }
  return prompts;
}

}  // namespace runner::cli

#include "runner/cli/generation/generated_text.h"

#include <cmath>
#include <cstdio>
#include <utility>

#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"

namespace runner::cli {
namespace {

/// The text of a prompt, or its messages.
std::string prompt_json(const engine::Prompt& prompt) {
  return prompt.messages.empty() ? core::json_quote(prompt.text) : messages_json(prompt.messages);
}

std::string numbers_json(const std::vector<float>& numbers) {
  std::string list = "[";
  char text[32];
  for (const float number : numbers) {
    std::snprintf(text, sizeof text, std::isfinite(number) ? "%.7g" : "\"%g\"", static_cast<double>(number));
    list += (list.size() > 1 ? ", " : "") + std::string(text);
  }
  return list + "]";
}

}  // namespace

std::string messages_json(const std::vector<std::pair<std::string, std::string>>& messages) {
  std::string list = "[";
  for (const auto& [role, content] : messages) {
    if (list.size() > 1) list += ", ";
    list += "{\"role\": " + core::json_quote(role) + ", \"content\": " + core::json_quote(content) + "}";
  }
  return list + "]";
}

namespace {

std::string shown_rate(double rate) {
  return rate < 1000 ? core::short_number(rate, 3) : core::with_commas(static_cast<std::int64_t>(rate));
}

}  // namespace

std::string rate_text(std::int64_t tokens, double seconds) {
  if (seconds <= 0) return "";
  return " (" + shown_rate(static_cast<double>(tokens) / seconds) + " tokens/s)";
}

void TextStream::piece(std::int64_t, std::int64_t, std::string_view text) {
  if (text.empty()) return;
  file_.put(terminal_ ? core::printable(text) : std::string(text));
  file_.flush();
  line_is_open_ = !text.ends_with('\n');
}

void TextStream::done(const engine::Generated&) {
  if (line_is_open_) file_.put("\n");
  line_is_open_ = false;
  file_.flush();
}

std::string JsonLines::line_of(const engine::Generated& generated) const {
  std::string line = "{\"prompt\": " + prompt_json(prompts_.at(static_cast<std::size_t>(generated.prompt)));
  if (options_.samples > 1) line += ", \"sample\": " + std::to_string(generated.sample);
  line += ", \"text\": " + core::json_quote(generated.text) +
          ", \"tokens\": " + std::to_string(generated.tokens.size()) +
          ", \"finish_reason\": " + core::json_quote(generated.finish_reason);
  if (options_.logprobs) line += ", \"logprobs\": " + numbers_json(generated.logprobs);
  return line + "}\n";
}

void JsonLines::done(const engine::Generated& generated) {
  waiting_[generated.prompt * options_.samples + generated.sample] = line_of(generated);
  bool written = false;
  for (auto first = waiting_.begin(); first != waiting_.end() && first->first == next_; ++next_) {
    file_.put(first->second);
    first = waiting_.erase(first);
    written = true;
  }
  if (written) file_.flush();
}

void JsonLines::finish() {
  for (const auto& [place, line] : waiting_) file_.put(line);
  waiting_.clear();
}

}  // namespace runner::cli

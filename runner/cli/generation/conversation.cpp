#include "runner/cli/generation/conversation.h"

#include <algorithm>
#include <utility>

#include "runner/cli/generation/generated_text.h"

namespace runner::cli {

std::optional<Turn> Conversation::take_last() {
  if (turns_.empty()) return std::nullopt;
  Turn last = std::move(turns_.back());
  turns_.pop_back();
  first_ = std::min(first_, turns_.size());
  return last;
}

engine::Prompt Conversation::prompt_from(std::size_t first, const std::string& question) const {
  engine::Prompt prompt;
  if (!system_.empty()) prompt.messages.emplace_back("system", system_);
  for (std::size_t i = first; i < turns_.size(); ++i) {
    prompt.messages.emplace_back("user", turns_[i].question);
    prompt.messages.emplace_back("assistant", turns_[i].answer);
  }
  prompt.messages.emplace_back("user", question);
  return prompt;
}

engine::Prompt Conversation::prompt(const std::string& question) const { return prompt_from(first_, question); }

engine::Prompt Conversation::prompt_alone(const std::string& question) const {
  return prompt_from(turns_.size(), question);
}

bool Conversation::leave_out_oldest() {
  if (first_ == turns_.size()) return false;
  ++first_;
  return true;
}

std::string Conversation::json() const {
  engine::Prompt all = prompt_from(0, "");
  all.messages.pop_back();  // the question
  return "{\"messages\": " + messages_json(all.messages) + "}";
}

}  // namespace runner::cli

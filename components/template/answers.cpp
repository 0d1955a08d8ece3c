#include "components/template/answers.h"

#include <algorithm>
#include <optional>

#include "runner/core/text/utf8.h"

namespace components::jinja {
namespace {

using runner::core::Failure;
using runner::core::Node;
using runner::core::Result;

constexpr const char *kAssistant = "assistant", *kWhite = " \t\r\n";

bool is_answer(const Node& message) {
  const Node* role = message.find("role");
  return role && role->is_string() && role->as_string() == kAssistant;
}

std::size_t common_prefix(std::string_view a, std::string_view b) {
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

void add(Ranges& ranges, const Range& range) {
  if (range.begin >= range.end) return;
  if (!ranges.empty() && ranges.back().end == range.begin && ranges.back().message == range.message) {
    ranges.back().end = range.end;
  } else {
    ranges.push_back(range);
  }
}

/// Neighbouring pieces that one pass wrote.
struct Run {
  std::size_t first = 0, last = 0;  ///< of `pieces`, the last one included
};

std::vector<Run> runs_of(const std::vector<Piece>& pieces, std::int32_t message) {
  std::vector<Run> runs;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i].pass != message) continue;
    if (!runs.empty() && runs.back().last + 1 == i) {
      runs.back().last = i;
    } else {
      runs.push_back({i, i});
    }
  }
  return runs;
}

/// Whether a prompt or a turn can be cut behind this character: a turn learns whole marks.
bool ends_mark(char c) {
  static constexpr std::string_view kMarkEnds = "\n>]";
  return kMarkEnds.find(c) != std::string_view::npos;
}

bool is_white(std::string_view text) { return text.find_first_not_of(kWhite) == std::string_view::npos; }

/// Whether a text is nothing but marks such as `</s>` or `[EOS]`, or the end token, with white space around them.
bool is_end(std::string_view text, std::string_view eos) {
  while (!is_white(text)) {
    text.remove_prefix(text.find_first_not_of(kWhite));
    if (!eos.empty() && text.starts_with(eos)) {
      text.remove_prefix(eos.size());
      continue;
    }
    const char closes = text.front() == '<' ? '>' : text.front() == '[' ? ']' : '\0';
    const std::size_t end = closes == '\0' ? std::string_view::npos : text.find(closes);
    if (end == std::string_view::npos || text.substr(0, end).find_first_of(kWhite) != std::string_view::npos) {
      return false;
    }
    text.remove_prefix(end + 1);
  }
  return true;
}

std::string_view end_token_of(const Chat& chat) {
  const Node* eos = chat.variables.is_mapping() ? chat.variables.find("eos_token") : nullptr;
  return eos && eos->is_string() ? std::string_view(eos->as_string()) : std::string_view();
}

/// What the pass of a message writes right before its first text; nothing where it writes none of it.
std::optional<std::string> head_of(const Rendering& rendering, std::int32_t message) {
  for (const Run& run : runs_of(rendering.pieces, message)) {
    std::string head;
    for (std::size_t p = run.first; p <= run.last; ++p) {
      const Piece& piece = rendering.pieces[p];
      if (piece.by_text && piece.message == message) return head;
      head = piece.by_text ? "" : head + rendering.text.substr(piece.begin, piece.end - piece.begin);
    }
  }
  return std::nullopt;
}

/// What the template writes in front of an answer to the messages before the first one; nothing where it refuses such a
/// chat, or writes no answer in a pass over it.
std::optional<std::string> head_of_answers(const Template& chat_template, Chat chat, const RenderOptions& options) {
  std::vector<Node>& messages = chat.messages.items();
  messages.erase(std::find_if(messages.begin(), messages.end(), is_answer), messages.end());
  const auto add = [&messages](const char* role, const char* content) {
    Node message = Node::mapping();
    message.set("role", Node::string(role));
    message.set("content", Node::string(content));
    messages.push_back(std::move(message));
  };
  if (messages.empty()) add("user", "hi");
  add(kAssistant, "Yes");
  chat.add_generation_prompt = false;
  const Result<Rendering> rendering = chat_template.render(chat, options);
  if (!rendering) return std::nullopt;
  return head_of(rendering.value(), static_cast<std::int32_t>(messages.size() - 1));
}

/// Of a template that writes the same whether or not it is asked for a prompt: one that it always writes behind the
/// messages, as the first one of Llama 3 did, or else what stands in front of each answer.
std::string constant_prompt(const Template& chat_template, const Chat& chat, std::string_view behind,
                            const RenderOptions& options) {
  const std::optional<std::string> head = head_of_answers(chat_template, chat, options);
  const bool is_prompt = !head || (!is_white(*head) && (head->starts_with(behind) || behind.starts_with(*head)));
  if (!behind.empty() && is_prompt) return std::string(behind);
  return head && !is_white(*head) ? *head : "";
}

/// How much of a run lies before what is learned: the generation prompt, and what stands before it (the first turn may
/// open the text). Where only its beginning is there (a prompt may open a thought that this turn lacks), it is cut
/// behind a mark; nothing where nothing of it is there.
///
/// by_template  bytes of the run before the first text of the message
std::optional<std::size_t> prompted(std::string_view text, std::string_view prompt, std::size_t by_template) {
  if (text.starts_with(prompt)) return prompt.size();
  const std::string_view head = text.substr(0, by_template);
  if (head == prompt.substr(0, by_template)) return by_template;
  for (std::size_t size = prompt.size(); size > 0; --size) {
    if (size < prompt.size() && !ends_mark(prompt[size - 1])) continue;
    const std::size_t at = head.find(prompt.substr(0, size));
    if (at != std::string_view::npos) return at + size;
  }
  return std::nullopt;
}

/// The answer that a piece inside `{% generation %}` belongs to: the block may stand outside of the loop's pass, behind
/// the last one.
std::int32_t owner_of(const Piece& piece, const std::vector<Node>& messages) {
  if (piece.pass != kNoMessage) return piece.pass;
  if (piece.message != kNoMessage) return piece.message;
  for (std::size_t i = messages.size(); i > 0; --i) {
    if (is_answer(messages[i - 1])) return static_cast<std::int32_t>(i - 1);
  }
  return 0;
}

constexpr const char* kMarkAnswers =
    "put {% generation %} and {% endgeneration %} around what the assistant writes in the template";

Failure unowned(std::size_t message, const Rendering& rendering, const Piece& piece) {
  const std::string_view text(rendering.text);
  return Failure{"the template writes " + runner::core::quote(text.substr(piece.begin, piece.end - piece.begin)) +
                     " into the answer of message " + std::to_string(message + 1) +
                     " outside of a loop over the messages, so it belongs to none",
                 kMarkAnswers};
}

Failure unowned_end(std::string_view tail) {
  return Failure{"the template writes " + runner::core::quote(tail) +
                     " behind the last answer, outside of a loop over the messages, so it belongs to none",
                 kMarkAnswers};
}

std::string_view text_of(const Rendering& rendering, const Run& run) {
  const std::size_t begin = rendering.pieces[run.first].begin;
  return std::string_view(rendering.text).substr(begin, rendering.pieces[run.last].end - begin);
}

/// Where what is learned of a run begins; nothing where that is not known. `has_prompt`: the template is asked for its
/// prompt, which may not stand in front of each answer, such as of one to the result of a tool.
std::optional<std::size_t> beginning(const Rendering& rendering, const Run& run, bool is_first, std::string_view prompt,
                                     bool has_prompt) {
  const std::size_t begin = rendering.pieces[run.first].begin;
  const std::string_view text = text_of(rendering, run);
  if (!is_first && !text.starts_with(prompt)) return begin;
  std::size_t head = 0;
  for (std::size_t p = run.first; p <= run.last && !rendering.pieces[p].by_text; ++p) {
    head = rendering.pieces[p].end - begin;
  }
  if (const auto cut = prompted(text, prompt, head)) return begin + *cut;
  if (has_prompt || is_white(text.substr(0, head))) return begin;
  return head < text.size() ? std::optional(begin + head) : std::nullopt;
}

Failure without_beginning(std::size_t message, const Rendering& rendering, const Run& run, std::string_view prompt) {
  return Failure{"the template writes " + runner::core::quote(text_of(rendering, run)) + " for message " +
                     std::to_string(message + 1) + ", an answer without text, and in front of others " +
                     runner::core::quote(prompt) + ": where this one begins is not known",
                 kMarkAnswers};
}

/// What the template writes behind the last answer and all passes, which may be the end of that answer.
std::string_view tail_of(const Rendering& rendering, const Run& last) {
  const std::vector<Piece>& pieces = rendering.pieces;
  const auto tail = pieces.begin() + static_cast<std::ptrdiff_t>(last.last) + 1;
  const bool is_tail =
      std::all_of(tail, pieces.end(), [](const Piece& piece) { return piece.pass == kNoMessage && !piece.by_text; });
  return is_tail && tail != pieces.end() ? std::string_view(rendering.text).substr(tail->begin) : std::string_view();
}

}  // namespace

Result<std::string> generation_prompt(const Template& chat_template, const Chat& chat, const RenderOptions& options) {
  Chat before = chat;
  std::vector<Node>& messages = before.messages.items();
  const auto first = std::find_if(messages.begin(), messages.end(), is_answer);
  if (first != messages.begin()) messages.erase(first, messages.end());
  before.add_generation_prompt = false;
  Result<Rendering> without = chat_template.render(before, options);
  if (!without && messages.size() < chat.messages.items().size()) {
    // One that looks at messages by their numbers needs all of them.
    if (!chat_template.names("add_generation_prompt")) return constant_prompt(chat_template, chat, "", options);
    before.messages = chat.messages;
    without = chat_template.render(before, options);
  }
  if (!without) return without.failure();
  before.add_generation_prompt = true;
  const Result<Rendering> with = chat_template.render(before, options);
  if (!with) return with.failure();
  const std::string& text = with.value().text;
  if (text == without.value().text) {  // it is written whether or not it is asked for, or never
    const auto& pieces = with.value().pieces;
    std::size_t behind = 0;
    for (const Piece& piece : pieces) {
      if (piece.pass != kNoMessage || piece.by_text) behind = piece.end;
    }
    return constant_prompt(chat_template, chat, std::string_view(text).substr(behind), options);
  }
  std::size_t begin = common_prefix(text, without.value().text);
  if (begin == without.value().text.size()) return text.substr(begin);
  // Without a prompt something else stands there (the end of the text), which may begin with the same characters.
  std::size_t written = 0;
  for (const Piece& piece : with.value().pieces) {
    if (piece.begin <= begin) written = piece.begin;
  }
  while (begin > written && !ends_mark(text[begin - 1])) --begin;
  return text.substr(begin);
}

Result<Ranges> answers_of(const Template& chat_template, const Chat& chat, const Rendering& rendering,
                          std::string_view prompt) {
  Ranges ranges;
  const std::vector<Piece>& pieces = rendering.pieces;
  const std::vector<Node>& messages = chat.messages.items();
  if (chat_template.has_generation()) {
    for (const Piece& piece : pieces) {
      if (piece.in_generation && !messages.empty()) add(ranges, {piece.begin, piece.end, owner_of(piece, messages)});
    }
    return ranges;
  }
  const bool has_prompt = chat_template.names("add_generation_prompt");
  const auto is_foreign = [&](const Piece& piece) {
    return piece.by_text && !is_answer(messages[static_cast<std::size_t>(piece.message)]);
  };
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (!is_answer(messages[i])) continue;
    const auto message = static_cast<std::int32_t>(i);
    const std::vector<Run> runs = runs_of(pieces, message);
    for (const Piece& piece : pieces) {
      // A loop that counts has passes of numbers, which are of no message.
      const bool has_none = piece.pass == kNoMessage || runs.empty();
      if (piece.by_text && piece.message == message && has_none) return unowned(i, rendering, piece);
    }
    for (std::size_t r = 0; r < runs.size(); ++r) {
      const Run& run = runs[r];
      for (std::size_t p = r > 0 ? runs[r - 1].last + 1 : run.first; p < run.first; ++p) {
        if (pieces[p].pass == kNoMessage) return unowned(i, rendering, pieces[p]);
      }
      const auto begin = beginning(rendering, run, r == 0, prompt, has_prompt);
      if (!begin) return without_beginning(i, rendering, run, prompt);
      for (std::size_t p = run.first; p <= run.last; ++p) {
        if (!is_foreign(pieces[p])) add(ranges, {std::max(pieces[p].begin, *begin), pieces[p].end, message});
      }
    }
    if (i + 1 < messages.size() || runs.empty()) continue;
    const std::string_view tail = tail_of(rendering, runs.back());
    if (tail.empty() || tail == prompt) continue;
    if (!is_end(tail, end_token_of(chat))) return unowned_end(tail);
    add(ranges, {rendering.text.size() - tail.size(), rendering.text.size(), message});
  }
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  Ranges merged;
  for (const Range& range : ranges) add(merged, range);
  return merged;
}

}  // namespace components::jinja

#include "components/template/answers.h"

#include <algorithm>

#include "runner/core/text/utf8.h"

namespace components::jinja {
namespace {

using runner::core::Failure;
using runner::core::Node;
using runner::core::Result;

bool is_answer(const Node& message) {
  const Node* role = message.find("role");
  return role && role->is_string() && (role->as_string() == "assistant" || role->as_string() == "model");
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

/// How much of a run lies before what is learned: the generation prompt, and what stands before it (the first turn may
/// open the text). Where only its beginning is there (a prompt may open a thought that this turn lacks), it is cut
/// behind a mark.
///
/// by_template  bytes of the run before the first text of the message
std::size_t prompted(std::string_view text, std::string_view prompt, std::size_t by_template) {
  if (text.starts_with(prompt)) return prompt.size();
  const std::string_view head = text.substr(0, by_template);
  if (head == prompt.substr(0, by_template)) return by_template;
  for (std::size_t size = prompt.size(); size > 0; --size) {
    if (size < prompt.size() && !ends_mark(prompt[size - 1])) continue;
    const std::size_t at = head.find(prompt.substr(0, size));
    if (at != std::string_view::npos) return at + size;
  }
  return 0;
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

Failure unowned(std::size_t message, const Rendering& rendering, const Piece& piece) {
  const std::string_view text(rendering.text);
  return Failure{"the template writes " + runner::core::quote(text.substr(piece.begin, piece.end - piece.begin)) +
                     " into the answer of message " + std::to_string(message + 1) +
                     " outside of a loop over the messages, so it belongs to none",
                 "put {% generation %} and {% endgeneration %} around what the assistant writes in the template"};
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
    if (!chat_template.names("add_generation_prompt")) return std::string();
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
    return text.substr(behind);
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
      const std::size_t begin = pieces[run.first].begin, end = pieces[run.last].end;
      std::size_t by_template = begin;
      for (std::size_t p = run.first; p <= run.last && !pieces[p].by_text; ++p) by_template = pieces[p].end;
      const std::string_view text = std::string_view(rendering.text).substr(begin, end - begin);
      const std::size_t cut = r == 0 || text.starts_with(prompt) ? prompted(text, prompt, by_template - begin) : 0;
      for (std::size_t p = run.first; p <= run.last; ++p) {
        if (!is_foreign(pieces[p])) add(ranges, {std::max(pieces[p].begin, begin + cut), pieces[p].end, message});
      }
    }
    // What ends the text behind the last answer is the end of that answer.
    if (i + 1 < messages.size() || runs.empty()) continue;
    const auto tail = pieces.begin() + static_cast<std::ptrdiff_t>(runs.back().last) + 1;
    const bool is_tail =
        std::all_of(tail, pieces.end(), [](const Piece& piece) { return piece.pass == kNoMessage && !piece.by_text; });
    const bool is_prompt = is_tail && tail != pieces.end() && !prompt.empty() &&
                           std::string_view(rendering.text).substr(tail->begin) == prompt;
    if (is_tail && !is_prompt && tail != pieces.end()) add(ranges, {tail->begin, pieces.back().end, message});
  }
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  Ranges merged;
  for (const Range& range : ranges) add(merged, range);
  return merged;
}

}  // namespace components::jinja

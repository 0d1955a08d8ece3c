#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "components/template/answers.h"
#include "components/template/template.h"

namespace components::jinja {

/// Bytes [begin, end) of a text that are a thought with the marks around it and the white space behind them, and what
/// stands between them: nothing where that is white space, or where the text ends before the second one.
struct Thought {
  std::size_t begin = 0, end = 0;
  std::size_t text_begin = 0, text_end = 0;
  bool is_closed = true;  ///< else the text ends within it
};

/// The thoughts of an answer, in order: what stands between `<think>` and `</think>`, or another pair of marks that
/// models write. A text may begin within a thought, as the prompt opens one, and one that begins with a thought may end
/// within it.
/// Source  the templates of Qwen3, DeepSeek-R1, SmolLM3 and Magistral; Axolotl's `split_thinking`
std::vector<Thought> thoughts_in(std::string_view text);

/// The parts of answers that are thoughts: what a message's reasoning wrote, or the thoughts of its content, each with
/// the marks that the template writes around it; and empty thoughts that it writes by itself.
///
/// answers  answers_of() the rendering
Ranges thoughts_of(const Rendering& rendering, const Ranges& answers);

}  // namespace components::jinja

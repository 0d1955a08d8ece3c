#pragma once

#include <string>

#include "runner/engine/engine.h"
#include "runner/terminal/text.h"

namespace runner::cli {

struct ViewStyle {
  terminal::Terminal terminal;
  std::size_t width = 100;  ///< columns
  bool ids = false;         ///< a table of ids and targets instead of text
};

/// Samples for people: the text with its tokens told apart, and which of them are learnt. On a terminal with colour
/// backgrounds alternate and learnt tokens are green; elsewhere a bar separates tokens, and `^` marks below the text
/// what is learnt, unless that is all.
std::string view_text(const engine::DataView& view, const ViewStyle& style);
std::string view_json(const engine::DataView& view);

/// For each token of the input whether some position is to predict it. `shifted`: targets are the input shifted by one
/// position; otherwise it is said for the positions themselves.
struct Learnt {
  std::vector<bool> tokens;
  bool shifted = false;
  std::int64_t targets = 0;  ///< positions with loss
};
Learnt learnt_of(const engine::SampleView& sample);

/// `answers.jsonl, line 3`; "" when nothing is known.
std::string source_text(const engine::SamplePart& part);

}  // namespace runner::cli

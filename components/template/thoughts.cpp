#include "components/template/thoughts.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace components::jinja {
namespace {

struct Marks {
  std::string_view open, close;
};

constexpr std::array<Marks, 5> kMarks = {{{"<think>", "</think>"},
                                          {"<thinking>", "</thinking>"},
                                          {"<reasoning>", "</reasoning>"},
                                          {"[THINK]", "[/THINK]"},
                                          {"<|begin_of_thought|>", "<|end_of_thought|>"}}};
constexpr std::string_view kMarkBegins = "<[", kMarkEnds = ">]", kWhite = " \n\t\r";

/// The first byte at or behind `at` that is none of these; the size where there is none.
std::size_t behind(std::string_view characters, std::string_view text, std::size_t at) {
  return std::min(text.find_first_not_of(characters, at), text.size());
}

/// A mark in a text.
struct Found {
  std::size_t at = 0;
  const Marks* marks = nullptr;
  bool opens = true;
  std::size_t end() const { return at + (opens ? marks->open : marks->close).size(); }
};

std::optional<Found> next_mark(std::string_view text, std::size_t from) {
  for (std::size_t at = text.find_first_of(kMarkBegins, from); at != std::string_view::npos;
       at = text.find_first_of(kMarkBegins, at + 1)) {
    for (const Marks& marks : kMarks) {
      if (text.substr(at).starts_with(marks.open)) return Found{at, &marks, true};
      if (text.substr(at).starts_with(marks.close)) return Found{at, &marks, false};
    }
  }
  return std::nullopt;
}

Thought thought(std::string_view text, std::size_t begin, std::size_t first, const Found& close) {
  const bool is_empty = behind(kWhite, text, first) >= close.at;
  return {begin, behind(kWhite, text, close.end()), first, is_empty ? first : close.at};
}

/// Where the mark ends that a template writes behind a thought; its beginning where there is none.
std::size_t end_of_mark(std::string_view text) {
  const std::size_t mark = text.find_first_of(kMarkEnds);
  return behind(kWhite, text, mark == std::string_view::npos ? 0 : mark + 1);
}

void add_within(const Range& answer, std::size_t begin, std::size_t end, Ranges& ranges) {
  begin = std::max(begin, answer.begin);
  end = std::min(end, answer.end);
  if (begin >= end) return;
  if (!ranges.empty() && ranges.back().end >= begin && ranges.back().message == answer.message) {
    ranges.back().end = std::max(ranges.back().end, end);
  } else {
    ranges.push_back({begin, end, answer.message});
  }
}

}  // namespace

std::vector<Thought> thoughts_in(std::string_view text) {
  std::vector<Thought> thoughts;
  std::vector<const Marks*> unclosed;  // so that no part of a text is searched more often than there are marks
  std::size_t at = 0;
  while (const std::optional<Found> mark = next_mark(text, at)) {
    at = mark->end();
    if (!mark->opens) {
      if (thoughts.empty() && unclosed.empty()) thoughts.push_back(thought(text, 0, 0, *mark));
      continue;
    }
    if (std::find(unclosed.begin(), unclosed.end(), mark->marks) != unclosed.end()) continue;
    std::optional<Found> close = next_mark(text, at);
    while (close && (close->opens || close->marks != mark->marks)) close = next_mark(text, close->end());
    if (close) {
      thoughts.push_back(thought(text, mark->at, at, *close));
      at = close->end();
    } else if (behind(kWhite, text, 0) == mark->at) {
      return {{mark->at, text.size(), at, at, /*is_closed=*/false}};
    } else {
      unclosed.push_back(mark->marks);
    }
  }
  return thoughts;
}

Ranges thoughts_of(const Rendering& rendering, const Ranges& answers) {
  const std::string_view text(rendering.text);
  const std::vector<Piece>& pieces = rendering.pieces;
  Ranges spans;  // in order of their beginnings
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    if (!piece.by_text) {
      for (const Thought& one : thoughts_in(text.substr(piece.begin, piece.end - piece.begin))) {
        const bool is_empty = one.text_begin == one.text_end && one.is_closed;
        if (is_empty) spans.push_back({piece.begin + one.begin, piece.begin + one.end, piece.message});
      }
    } else if (piece.part != Part::kAnswer) {
      const auto is_mark = [&](std::size_t other) {
        return !pieces[other].by_text && pieces[other].pass == piece.pass;
      };
      const bool is_bare = piece.part == Part::kThought;
      Range span{piece.begin, piece.end, piece.message};
      if (is_bare && i > 0 && is_mark(i - 1)) span.begin = pieces[i - 1].begin;
      if (is_bare && i + 1 < pieces.size() && is_mark(i + 1)) {
        span.end += end_of_mark(text.substr(span.end, pieces[i + 1].end - span.end));
      }
      spans.push_back(span);
    }
  }
  std::sort(spans.begin(), spans.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  Ranges thoughts;
  auto first = spans.begin();
  for (const Range& answer : answers) {
    while (first != spans.end() && first->end <= answer.begin) ++first;
    for (auto span = first; span != spans.end() && span->begin < answer.end; ++span) {
      add_within(answer, span->begin, span->end, thoughts);
    }
  }
  return thoughts;
}

}  // namespace components::jinja

#include "components/metric/text/words.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "components/tokenizer/text/unicode.h"

namespace components::metric {
namespace {

using tokenizer::char_table;

/// As Python's str.isspace() for what a text has.
bool is_space(char32_t c) { return (c >= 0x1C && c <= 0x1F) || char_table().is(c, tokenizer::kSpace); }

/// As `\w` of Python.
bool is_of_word(char32_t c) {
  return c == '_' || char_table().is(c, tokenizer::kLetter) || char_table().is(c, tokenizer::kNumber);
}

bool is_punctuation(char32_t c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

/// Where `in_word` does not hold words end.
template <typename InWord>
std::vector<std::string> split(std::string_view text, const InWord& in_word) {
  std::vector<std::string> words;
  bool open = false;
  for (const char32_t c : tokenizer::code_points(text)) {
    if (!in_word(c)) {
      open = false;
      continue;
    }
    if (!std::exchange(open, true)) words.emplace_back();
    tokenizer::append_utf8(words.back(), c);
  }
  return words;
}

std::vector<std::string> split_at_spaces(std::string_view text) {
  return split(text, [](char32_t c) { return !is_space(c); });
}

std::string without_last_spaces(std::string text) {
  std::size_t end = 0;
  for (std::size_t at = 0; at < text.size();) {
    const tokenizer::CodePoint point = tokenizer::code_point_at(text, at);
    at += point.length;
    if (!is_space(point.value)) end = at;
  }
  text.resize(end);
  return text;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_mark(char c) { return c == '.' || c == ','; }

/// Between two neighbours that `apart` tells, a space on the given sides of each; a neighbour belongs to one pair.
template <typename Apart>
std::string spaced(std::string_view text, const Apart& apart, std::string_view before, std::string_view after) {
  std::string made;
  for (std::size_t i = 0; i < text.size();) {
    if (i + 1 < text.size() && apart(text[i], text[i + 1])) {
      made.append(before).append(1, text[i]).append(1, ' ').append(1, text[i + 1]).append(after);
      i += 2;
    } else {
      made += text[i++];
    }
  }
  return made;
}

}  // namespace

std::vector<std::string> squad_words(std::string_view text) {
  std::string plain;
  for (const char32_t c : tokenizer::code_points(tokenizer::lower_case(tokenizer::with_replacements(text)))) {
    if (!is_punctuation(c)) tokenizer::append_utf8(plain, c);
  }
  // An article is a run of letters and digits by itself, also within what spaces part, such as "a\u2014b".
  std::string without, run;
  const auto end_run = [&] {
    without += run == "a" || run == "an" || run == "the" ? " " : run;
    run.clear();
  };
  for (const char32_t c : tokenizer::code_points(plain)) {
    if (is_of_word(c)) {
      tokenizer::append_utf8(run, c);
    } else {
      end_run();
      tokenizer::append_utf8(without, c);
    }
  }
  end_run();
  return split_at_spaces(without);
}

std::vector<std::string> rouge_words(std::string_view text) {
  return split(tokenizer::lower_case(tokenizer::with_replacements(text)),
               [](char32_t c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); });
}

std::vector<std::string> bleu_words(std::string_view text) {
  std::string line = without_last_spaces(tokenizer::with_replacements(text));
  replace_all(line, "<skipped>", "");
  replace_all(line, "-\n", "");
  replace_all(line, "\n", " ");
  for (const auto& [entity, plain] :
       {std::pair{"&quot;", "\""}, std::pair{"&amp;", "&"}, std::pair{"&lt;", "<"}, std::pair{"&gt;", ">"}}) {
    replace_all(line, entity, plain);
  }
  std::string apart = " ";
  for (const char c : line) {
    const bool is_symbol = is_punctuation(static_cast<unsigned char>(c)) && !is_mark(c) && c != '-' && c != '\'';
    if (is_symbol) {
      apart.append(1, ' ').append(1, c).append(1, ' ');
    } else {
      apart += c;
    }
  }
  apart += ' ';
  // Bytes do: what is not ASCII is no digit and no mark.
  apart = spaced(
      apart, [](char a, char b) { return !is_digit(a) && is_mark(b); }, "", " ");
  apart = spaced(
      apart, [](char a, char b) { return is_mark(a) && !is_digit(b); }, " ", "");
  apart = spaced(
      apart, [](char a, char b) { return is_digit(a) && b == '-'; }, "", " ");
  return split_at_spaces(apart);
}

}  // namespace components::metric

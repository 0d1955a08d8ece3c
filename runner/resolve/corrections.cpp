#include "runner/resolve/corrections.h"

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "runner/core/text/utf8.h"
#include "runner/resolve/load.h"

namespace runner::resolve {
namespace {

using core::Diagnostics;

constexpr int kCorrectionsMax = 100;

/// Bytes [begin, end) of the text at a place; nothing where it has none.
std::optional<std::pair<std::size_t, std::size_t>> bytes_at(const std::string& text, const core::Location& at) {
  std::size_t begin = 0;
  for (int line = 1; line < at.line; ++line) {
    begin = text.find('\n', begin);
    if (begin == std::string::npos) return std::nullopt;
    ++begin;
  }
  const std::size_t line_end = std::min(text.find('\n', begin), text.size());
  const auto skip = [&](std::size_t from, int code_points) {
    for (; code_points > 0 && from < line_end; --code_points)
      from += std::max<std::size_t>(1, core::utf8_length(text, from));
    return std::min(from, line_end);
  };
  begin = skip(begin, at.column - 1);
  const std::size_t end = skip(begin, at.width);
  if (begin == end) return std::nullopt;
  return std::pair{begin, end};
}

Diagnostics check(const std::string& name, const std::string& text, const recipe::ComposeOptions& options,
                  const registry::Registry& registry) {
  Diagnostics diagnostics;
  const auto source = std::make_shared<const core::Source>(core::Source{name, text, core::Source::Kind::kFile});
  load_recipe_text(source, options, registry, diagnostics);
  return diagnostics;
}

}  // namespace

std::vector<Correction> corrections_of(const Diagnostics& diagnostics, const std::string& name) {
  std::vector<Correction> corrections;
  for (const core::Diagnostic& one : diagnostics.all()) {
    if (one.severity != core::Severity::kError || !one.fix) continue;
    const core::Location& at = one.fix->location;
    const bool in_file = at.known() && at.source->kind == core::Source::Kind::kFile && at.source->name == name;
    if (!in_file || at.line == 0) continue;
    const auto place = bytes_at(at.source->text, at);
    if (!place) continue;
    std::string wrong = at.source->text.substr(place->first, place->second - place->first);
    corrections.push_back({at, std::move(wrong), one.fix->text});
  }
  return corrections;
}

std::optional<std::string> corrected(const std::string& text, const Correction& correction) {
  const auto place = bytes_at(text, correction.at);
  if (!place) return std::nullopt;
  const std::string there = text.substr(place->first, place->second - place->first);
  if (there != correction.wrong) return std::nullopt;
  std::string word = correction.right;
  const char quote = there.front();
  const bool is_quoted = there.size() > 1 && (quote == '"' || quote == '\'') && there.back() == quote;
  // A text stays one; a number or a truth value was to lose its quotes.
  const bool is_text =
      std::any_of(word.begin(), word.end(), [](char c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; });
  if (is_quoted && is_text && word != "true" && word != "false") word = quote + word + quote;
  return text.substr(0, place->first) + word + text.substr(place->second);
}

CorrectedRecipe correct_recipe(const std::string& name, const std::string& text, const recipe::ComposeOptions& options,
                               const registry::Registry& registry) {
  CorrectedRecipe fixed{text, {}};
  Diagnostics told = check(name, fixed.text, options, registry);
  for (bool changed = true; changed && fixed.made.size() < kCorrectionsMax;) {
    changed = false;
    for (const Correction& correction : corrections_of(told, name)) {
      const auto tried = corrected(fixed.text, correction);
      if (!tried) continue;
      Diagnostics after = check(name, *tried, options, registry);
      if (after.error_count() >= told.error_count()) continue;
      fixed.text = *tried;
      fixed.made.push_back(correction);
      told = std::move(after);
      changed = true;
      break;  // the places of the others may have moved
    }
  }
  return fixed;
}

}  // namespace runner::resolve

#include "runner/core/diagnostics.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "runner/core/text/utf8.h"
#include "runner/core/text/wording.h"

namespace runner::core {

Hint did_you_mean(const std::string& word) {
  return word.empty() ? Hint() : Hint("did you mean " + quote(word) + "?", word);
}

namespace {

Diagnostic made(Severity severity, Location location, std::string message, Hint hint) {
  std::optional<Fix> fix;
  if (!hint.word.empty()) fix = Fix{location, std::move(hint.word)};
  return {severity, std::move(location), std::move(message), std::move(hint.text), std::move(fix)};
}

}  // namespace

void Diagnostics::error(Location location, std::string message, Hint hint) {
  add(made(Severity::kError, std::move(location), std::move(message), std::move(hint)));
}

void Diagnostics::warning(Location location, std::string message, Hint hint) {
  add(made(Severity::kWarning, std::move(location), std::move(message), std::move(hint)));
}

void Diagnostics::notice(Location location, std::string message, Hint hint) {
  add(made(Severity::kNotice, std::move(location), std::move(message), std::move(hint)));
}

void Diagnostics::add(Diagnostic diagnostic) {
  diagnostic.hint = worded(std::move(diagnostic.hint));
  items_.push_back(std::move(diagnostic));
}

void Diagnostics::add_all(const Diagnostics& other) {
  items_.insert(items_.end(), other.items_.begin(), other.items_.end());
}

bool Diagnostics::has_errors() const { return error_count() > 0; }

int Diagnostics::error_count() const {
  return static_cast<int>(
      std::count_if(items_.begin(), items_.end(), [](const Diagnostic& d) { return d.severity == Severity::kError; }));
}

void Diagnostics::sort() {
  // Two readings of one file are one source: the name counts, not the object.
  std::map<std::string, std::size_t> order;
  const auto rank = [&](const Diagnostic& d) {
    return order.try_emplace(d.location.known() ? d.location.source->name : "", order.size()).first->second;
  };
  std::vector<std::pair<std::tuple<std::size_t, int, int>, Diagnostic>> keyed;
  for (Diagnostic& d : items_) {
    const std::tuple key{rank(d), d.location.line, d.location.column};
    keyed.emplace_back(key, std::move(d));
  }
  std::stable_sort(keyed.begin(), keyed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  items_.clear();
  std::set<std::tuple<Severity, std::string, int, int, std::string, std::string>> seen;
  for (auto& [key, d] : keyed) {
    const std::string name = d.location.known() ? d.location.source->name : "";
    if (!seen.insert({d.severity, name, d.location.line, d.location.column, d.message, d.hint}).second) continue;
    items_.push_back(std::move(d));
  }
}

}  // namespace runner::core

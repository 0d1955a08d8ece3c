#include "runner/core/text/suggest.h"

#include <algorithm>
#include <cctype>

namespace runner::core {
namespace {

std::string folded(std::string_view word) {
  std::string out;
  for (const char c : word) {
    out += c == '-' || c == '.' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

// Optimal string alignment; three rows are enough. Gives up with `limit + 1` when the lengths alone are too far apart.
std::size_t distance(const std::string& a, const std::string& b, std::size_t limit) {
  const std::size_t gap = a.size() > b.size() ? a.size() - b.size() : b.size() - a.size();
  if (gap > limit) return limit + 1;
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

/// Whether `word` is `whole` with up to a third of its letters removed, but not the first.
bool shortens(const std::string& word, const std::string& whole) {
  if (word.front() != whole.front() || 3 * word.size() < 2 * whole.size()) return false;
  std::size_t found = 0;
  for (const char c : whole) found += found < word.size() && c == word[found] ? 1 : 0;
  return found == word.size();
}

}  // namespace

std::vector<std::string> all_closest(std::string_view word, const std::vector<std::string>& candidates) {
  constexpr std::size_t kWordMax = 64;  // longer words are no typos
  std::vector<std::string> answers;
  if (word.empty() || word.size() > kWordMax) return answers;
  // Another spelling of one, `max_new_tokens` of `max-new-tokens`, is no other one.
  const auto add = [&answers](const std::string& candidate) {
    const bool is_new = std::none_of(answers.begin(), answers.end(),
                                     [&](const std::string& other) { return folded(other) == folded(candidate); });
    if (is_new) answers.push_back(candidate);
  };
  const std::string wanted = folded(word);
  const std::size_t limit = std::max<std::size_t>(1, wanted.size() / 3);
  std::size_t best = limit;
  for (const std::string& candidate : candidates) {
    const std::size_t d = distance(wanted, folded(candidate), limit);
    // A word of one or two letters is one typo away from every other.
    if (d > best || d >= std::max(wanted.size(), candidate.size())) continue;
    if (d < best) answers.clear();
    best = d;
    add(candidate);
  }
  constexpr std::size_t kShortFormMin = 4;  // fewer letters appear in every other word
  if (!answers.empty() || wanted.size() < kShortFormMin) return answers;
  for (const std::string& candidate : candidates) {
    if (!candidate.empty() && shortens(wanted, folded(candidate))) add(candidate);
  }
  return answers;
}

std::string closest(std::string_view word, const std::vector<std::string>& candidates) {
  const std::vector<std::string> near = all_closest(word, candidates);
  return near.size() == 1 ? near.front() : "";
}

}  // namespace runner::core

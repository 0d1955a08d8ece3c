#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace tests {

/// Makes chat templates from others: words of the language, parts of another template, cuts, repetitions and bits.
class TemplateTexts {
 public:
  TemplateTexts(std::vector<std::string> corpus, std::uint64_t seed) : corpus_(std::move(corpus)), random_(seed) {}

  std::string next();
  /// Parses it and renders chats with it. Aborts when the pieces of a rendering are not the whole text in order, when
  /// they name a message that there is not, or when an answer lies outside of the text.
  static void read(const std::string& text);

 private:
  std::size_t below(std::size_t limit) { return limit == 0 ? 0 : random_() % limit; }
  /// A place where a tag, a name or a bracket may begin.
  std::size_t border(const std::string& text);
  void damage(std::string& text);

  std::vector<std::string> corpus_;
  std::mt19937_64 random_;
};

}  // namespace tests

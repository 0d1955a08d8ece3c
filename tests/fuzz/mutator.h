#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace tests {

/// Makes new texts from old ones: cuts, copies, flips, words of the recipe language, parts of another seed. The same
/// seed gives the same texts.
class Mutator {
 public:
  Mutator(std::vector<std::string> corpus, std::uint64_t seed) : corpus_(std::move(corpus)), random_(seed) {}

  std::string next();

 private:
  std::size_t below(std::size_t limit) { return limit == 0 ? 0 : random_() % limit; }
  const std::string& any_seed() { return corpus_[below(corpus_.size())]; }
  std::size_t line_start(const std::string& text);
  std::string some_lines(const std::string& text);
  void mutate(std::string& text);

  std::vector<std::string> corpus_;
  std::mt19937_64 random_;
};

}  // namespace tests

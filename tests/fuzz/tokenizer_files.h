#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace tests {

/// Makes damaged tokenizers from whole ones, a tokenizer.json or a SentencePiece model each: values of JSON, bits,
/// lengths, cuts and repetitions.
class TokenizerFiles {
 public:
  TokenizerFiles(std::vector<std::string> corpus, std::uint64_t seed) : corpus_(std::move(corpus)), random_(seed) {}

  std::string next();
  /// Reads it, and encodes and decodes with what is accepted. Aborts when that gives offsets outside the text, or text
  /// that is not UTF-8.
  static void read(const std::string& file);

 private:
  std::size_t below(std::size_t limit) { return limit == 0 ? 0 : random_() % limit; }
  void damage(std::string& file);

  std::vector<std::string> corpus_;
  std::mt19937_64 random_;
};

}  // namespace tests

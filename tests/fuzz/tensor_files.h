#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace tests {

/// Makes damaged files of tensors from whole ones: bits, lengths, operations of pickle, cuts and repetitions.
class TensorFiles {
 public:
  TensorFiles(std::vector<std::string> corpus, std::uint64_t seed) : corpus_(std::move(corpus)), random_(seed) {}

  std::string next();
  /// Gives it to every reader of such files. Aborts when a tensor that was accepted is not in the file.
  static void read(const std::string& file);

 private:
  std::size_t below(std::size_t limit) { return limit == 0 ? 0 : random_() % limit; }
  void damage(std::string& file);

  std::vector<std::string> corpus_;
  std::mt19937_64 random_;
};

/// A small file with one weight that bitsandbytes packed, as `nf4` with scales in 8 bits, or in 8 bits.
std::string packed_file(const std::string& quant_type);

}  // namespace tests

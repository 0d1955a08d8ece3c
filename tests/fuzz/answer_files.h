#pragma once

#include <cstdint>
#include <random>
#include <string>

#include "tests/fuzz/json_files.h"

namespace tests {

/// Makes damaged responses of a server such as the Hugging Face Hub: a status, headers, an empty line and a body.
class AnswerFiles {
 public:
  AnswerFiles(JsonFiles bodies, std::uint64_t seed) : bodies_(std::move(bodies)), random_(seed) {}

  std::string next();

  /// Gives it to what reads responses of the Hub and of other servers. Aborts when that accepts a name that leaves its
  /// folder, a redirect that leaves https, or a number that is none.
  static void read(const std::string& text);

 private:
  std::size_t below(std::size_t limit) { return limit == 0 ? 0 : random_() % limit; }
  void damage(std::string& text);

  JsonFiles bodies_;
  std::mt19937_64 random_;
};

}  // namespace tests

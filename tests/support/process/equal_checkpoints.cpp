#include "tests/support/process/equal_checkpoints.h"

#include <catch2/catch.hpp>

namespace tests {

std::vector<std::string> tensors_of_ranks(int ranks) {
  std::vector<std::string> files = {"model", "optimizer"};
  for (int rank = 0; rank < ranks; ++rank) files.push_back("random_states_" + std::to_string(rank));
  return files;
}

void check_equal_checkpoints(const TestRun& a, const TestRun& b, const std::string& step,
                             const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    const std::string name = file + ".safetensors";
    INFO(name);
    CHECK((a.saved(step, name).size() > 60));
    CHECK((a.saved(step, name) == b.saved(step, name)));  // not printed: the bytes of a file
  }
}

}  // namespace tests

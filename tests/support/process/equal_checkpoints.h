#pragma once

#include <string>
#include <vector>

#include "tests/support/process/test_run.h"

namespace tests {

/// `model`, `optimizer` and the random states of this many processes: what a checkpoint of every run has.
std::vector<std::string> tensors_of_ranks(int ranks = 1);

/// Fails the test unless the checkpoints that two runs have of a step hold the same bytes in these .safetensors files.
void check_equal_checkpoints(const TestRun& a, const TestRun& b, const std::string& step,
                             const std::vector<std::string>& files = tensors_of_ranks());

}  // namespace tests

#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/support/paths.h"
#include "tests/support/process/test_run.h"

namespace tests {

/// The built program with the pretended accelerator as its GPU support: `device: cuda` trains on it.
inline std::string program_on_gpu() { return build_dir() + "/pretended/bin/roux"; }

/// A driver that has two GPUs. `more` is added: variables of tests/programs/pretended_cuda.cpp.
inline std::map<std::string, std::string> with_gpus(const std::map<std::string, std::string>& more = {}) {
  std::map<std::string, std::string> environment = TestRun::environment();
  environment["LD_LIBRARY_PATH"] = build_dir() + "/pretended/lib";
  environment["FAKE_GPUS"] = "2";
  environment.insert(more.begin(), more.end());
  return environment;
}

/// That program instead of the one that `command` starts.
inline std::vector<std::string> on_gpu(std::vector<std::string> command) {
  command.front() = program_on_gpu();
  return command;
}

}  // namespace tests

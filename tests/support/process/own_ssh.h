#pragma once

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>

#include "tests/support/process/test_run.h"

namespace tests {

/// `environment` with an `ssh` that does on this machine what the real one does on another: its options end at --, then
/// come the host and the words for a shell. `assignments` stand before those words: what is different there.
inline std::map<std::string, std::string> with_own_ssh(const TestRun& place,
                                                       std::map<std::string, std::string> environment,
                                                       const std::string& assignments = "") {
  place.write("ssh", "#!/bin/sh\nwhile [ $# -gt 3 ]; do shift; done\ntest \"$1\" = -- || exit 255\n" + assignments +
                         " exec sh -c \"$3\"\n");
  std::filesystem::permissions(place.path() / "ssh", std::filesystem::perms::owner_all);
  environment["PATH"] = place.path().string() + ":" + std::getenv("PATH");
  return environment;
}

}  // namespace tests

#pragma once

#include <cstdlib>
#include <map>
#include <string>

namespace tests {

/// These variables of the environment while this lives, and no others of programs that start processes: the tests
/// themselves may run in a job.
class Variables {
 public:
  using Values = std::map<std::string, std::string>;
  explicit Variables(const Values& values) : values_(values) {
    for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
                             "TORCHELASTIC_USE_AGENT_STORE", "SLURM_STEP_ID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"}) {
      unsetenv(name);
    }
    for (const auto& [name, value] : values_) setenv(name.c_str(), value.c_str(), 1);
  }
  ~Variables() {
    for (const auto& [name, value] : values_) unsetenv(name.c_str());
  }
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;
  const Values& values() const { return values_; }

 private:
  Values values_;
};

}  // namespace tests

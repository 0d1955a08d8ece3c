#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace runner::launch {

/// The settings of a Slurm batch job.
struct SlurmJob {
  std::string name, folder;          ///< folder: working directory
  std::vector<std::string> command;  ///< of each process: `roux run recipe.yaml`
  int num_machines = 1, num_processes = 1;
  std::optional<std::int64_t> threads;  ///< per process
  std::optional<double> time_limit_s;   ///< of the job; by default the partition's
  double margin_s = 120;                ///< time before the limit at which training is asked to save and stop
};

/// A script for `sbatch`: starts the processes, forwards the warning before the time limit to them, and requeues the
/// job when they have stopped resumable.
std::string slurm_script(const SlurmJob& job);

/// `word` quoted for a POSIX shell, if necessary.
std::string shell_word(const std::string& word);
/// The words of one command.
std::string shell_line(const std::vector<std::string>& words);

}  // namespace runner::launch

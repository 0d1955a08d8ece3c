#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace runner::launch {

/// What a batch job of Slurm is asked for.
struct SlurmJob {
  std::string name, folder;          ///< folder: where the command is run
  std::vector<std::string> command;  ///< `roux run recipe.yaml`, of each process
  int num_machines = 1, num_processes = 1;
  std::optional<std::int64_t> threads;  ///< of a process
  std::optional<double> time_limit_s;   ///< of the job; else the partition's
  double margin_s = 120;                ///< before that, training is asked to save and stop
};

/// A script for `sbatch`: starts the processes, hands the warning before the time limit on to them, and puts the job
/// back into the queue when they have stopped resumable.
std::string slurm_script(const SlurmJob& job);

/// `word`, as a POSIX shell reads it back; as it is where it is plain.
std::string shell_word(const std::string& word);
/// The words of one command.
std::string shell_line(const std::vector<std::string>& words);

}  // namespace runner::launch

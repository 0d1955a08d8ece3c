#include "runner/launch/slurm_script.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string_view>

#include "runner/core/text/text.h"

namespace runner::launch {
namespace {

/// `1-02:03:00`: whole minutes, which is what Slurm counts in.
std::string slurm_time(double seconds) {
  const auto minutes = std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(seconds / 60)));
  char text[64];
  std::snprintf(text, sizeof text, "%lld-%02lld:%02lld:00", static_cast<long long>(minutes / 1440),
                static_cast<long long>(minutes / 60 % 24), static_cast<long long>(minutes % 60));
  return text;
}

}  // namespace

std::string shell_word(const std::string& word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,+@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string shell_line(const std::vector<std::string>& words) { return core::joined(words, " ", shell_word); }

std::string slurm_script(const SlurmJob& job) {
  std::string text = "#!/bin/bash\n";
  const auto ask = [&](const std::string& option) { text += "#SBATCH --" + option + "\n"; };
  ask("job-name=" + job.name);
  ask("nodes=" + std::to_string(job.num_machines));
  ask("ntasks=" + std::to_string(job.num_processes));
  if (job.num_processes % job.num_machines == 0) {
    ask("ntasks-per-node=" + std::to_string(job.num_processes / job.num_machines));
  }
  if (job.threads) ask("cpus-per-task=" + std::to_string(*job.threads));
  if (job.time_limit_s) ask("time=" + slurm_time(*job.time_limit_s));
  ask("signal=B:USR1@" + std::to_string(static_cast<std::int64_t>(std::ceil(job.margin_s))));
  ask("requeue");
  ask("open-mode=append");
  ask("output=%x-%j.log");
  text += "\ncd " + shell_word(job.folder) + " || exit\n";
  if (job.threads) text += "export SRUN_CPUS_PER_TASK=" + std::to_string(*job.threads) + "\n";
  text += "srun " + shell_line(job.command) +
          " &\n"
          "step=$!\n"
          "# Before the time limit: finish the step, save, and exit with 75. srun forwards the signal.\n"
          "trap 'kill -USR1 $step' USR1\n"
          "trap 'kill -TERM $step' TERM\n"
          "# A trap ends a wait; the step continues.\n"
          "while kill -0 $step 2> /dev/null; do wait $step; done\n"
          "wait $step; status=$?\n"
          "if [ $status = 75 ]; then\n"
          "  scontrol requeue \"$SLURM_JOB_ID\"\n"
          "fi\n"
          "exit $status\n";
  return text;
}

}  // namespace runner::launch

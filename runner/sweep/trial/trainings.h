#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runner/sweep/trial/gpu_shares.h"

namespace runner::resolve {
struct Recipe;
}
namespace runner::sweep {

/// One process of a trial.
struct Training {
  std::vector<std::string> words;  ///< the command line, without the name of the program
  std::string run_id;              ///< id of the new run; "" when it resumes one
  /// The recipe that the words would read, if they read nothing else; else null. Its only source is its
  /// resolved_json().
  std::shared_ptr<const resolve::Recipe> recipe;
};

/// The running trainings of a worker. Each is a command line of roux, `run RECIPE --new`, with its own run; the
/// implementation chooses the kind of process (`sweep.isolation`).
class Trainings {
 public:
  struct End {
    std::int64_t trial = 0;
    int status = 0;            ///< of the process, or 128 + the signal that ended it
    std::string words;         ///< the error that it printed; "" when it printed none
    std::string refusal = {};  ///< error of the system, which had no process for it; "" when started
  };

  virtual ~Trainings() = default;  ///< kills those that still run
  /// RunError when it cannot be started; some report that as its end.
  virtual void start(std::int64_t trial, Training training) = 0;
  /// Nothing where it has ended.
  virtual void send(std::int64_t trial, int signal) = 0;
  virtual std::vector<int> descriptors() const = 0;  ///< to be polled: something has happened
  /// Those that have ended since the last look.
  virtual std::vector<End> take_ended() = 0;
};

/// Set in a trial's process that got its GPUs in CUDA_VISIBLE_DEVICES: `launch.gpu_ids` has been heard.
inline constexpr const char* kGpusShared = "ROUX_GPUS_SHARED";

/// A new process of `program` for each: 0.2 s each, fully independent. Each gets GPUs of `gpus` while it runs.
std::unique_ptr<Trainings> trainings_by_exec(std::string program, GpuShares gpus);

/// Forks of one process of `program`, which has loaded the engine: some milliseconds each. It is started with the first
/// training, and again when it was ended.
std::unique_ptr<Trainings> trainings_by_fork(std::string program);

/// This process, one training after the other, on a separate thread. `train` returns the exit status, puts its error
/// output into `errors`, and obeys a `signal` as soon as there is one.
using TrainHere = std::function<int(const Training& training, const std::atomic<int>& signal, std::string& errors)>;
std::unique_ptr<Trainings> in_process_runner(TrainHere train);

/// What trainings_by_fork() starts, `roux fork-trainings DESCRIPTOR`.
class TrialRunner {
 public:
  virtual ~TrialRunner() = default;
  virtual void before_fork(const std::vector<std::string>& words) = 0;
  virtual int train(const std::vector<std::string>& words) = 0;  ///< in the fork; the exit status
};

/// Starts and watches trainings for a worker at the other end of the socket, until that closes. The process must have
/// one thread.
void serve_trainings(int descriptor, TrialRunner& trained);

/// Set when serve_trainings() is to run: library symbols are bound at the start, not again in each fork.
inline constexpr const char* kBindNow = "LD_BIND_NOW";

}  // namespace runner::sweep

#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace runner::cli {

/// The events of a straight run with their times, from its `--verbose` output.
struct Trace {
  struct Mark {
    std::int64_t step = 0;
    std::int64_t at_us = 0;  ///< since the start of the program
  };
  std::vector<Mark> trained;     ///< optimizer steps, in order
  std::vector<Mark> saving;      ///< saves that begin
  std::vector<Mark> saved;       ///< saves that are committed
  std::vector<Mark> evaluating;  ///< evaluations that begin
  std::int64_t started_us = 0;   ///< when the run had its folder
  std::int64_t ended_us = 0;

  /// Reads one line of output; ignores unknown lines.
  void read_line(const std::string& line, std::int64_t at_us);
};

/// When a process is killed: `delay_us` after a line that ends with `line`; "" is its start, "*" its first trained
/// step.
struct KillPoint {
  std::string line;
  std::int64_t delay_us = 0;
};

/// A run that is killed at each of these points in turn, resumed after each, and then trained to its end.
struct KillCase {
  std::string what;  ///< `at step 17`, `during a save`
  std::vector<KillPoint> kills;
};

struct KillOptions {
  std::int64_t random = 20;         ///< random moments, spread over the run
  std::vector<std::int64_t> steps;  ///< `--kill-at`
  bool adversarial = true;          ///< moments at which something is half done
};

/// All cases, in the order to run them. Adversarial moments that a run is too short for are omitted.
std::vector<KillCase> plan_kills(const Trace& trace, const KillOptions& options, std::mt19937_64& random);

/// Lines of `--verbose` that the points wait for; the loop and the saver write them.
std::string trained_line(std::int64_t step);
std::string saving_line(std::int64_t step);
std::string committed_line(std::int64_t step);

/// Whether `line` is the one that a point waits for.
bool is_reached(const KillPoint& point, const std::string& line);

}  // namespace runner::cli

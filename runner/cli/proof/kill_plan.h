#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace runner::cli {

/// What an undisturbed run said while it trained, with the time of each line; made by reading its `--verbose` output.
struct Trace {
  struct Mark {
    std::int64_t step = 0;
    std::int64_t at_us = 0;  ///< since the start of the program
  };
  std::vector<Mark> trained;     ///< optimizer steps, in order
  std::vector<Mark> saving;      ///< saves that begin
  std::vector<Mark> saved;       ///< saves that are done: the folder has its name
  std::vector<Mark> evaluating;  ///< evaluations that begin
  std::int64_t started_us = 0;   ///< when the run had its folder
  std::int64_t ended_us = 0;

  /// Takes one line of output; the lines that it does not know are passed over.
  void read_line(const std::string& line, std::int64_t at_us);
};

/// When a process is killed: so long after a line that ends with `line`; "" is its start, "*" the first step that it
/// has trained.
struct KillPoint {
  std::string line;
  std::int64_t delay_us = 0;
};

/// One killed run: killed at each of these points in turn, resumed after each, and then left alone.
struct KillCase {
  std::string what;  ///< `at step 17`, `during a save`
  std::vector<KillPoint> kills;
};

struct KillWishes {
  std::int64_t random = 20;         ///< random moments, spread over the run
  std::vector<std::int64_t> steps;  ///< `--kill-at`
  bool adversarial = true;          ///< the moments at which something is half done
};

/// Every case, in the order in which they are run. A run too short for one of the adversarial moments goes without it.
std::vector<KillCase> plan_kills(const Trace& trace, const KillWishes& wishes, std::mt19937_64& random);

/// Lines of `--verbose` that the points wait for; the loop and the saver write them.
std::string trained_line(std::int64_t step);
std::string saving_line(std::int64_t step);
std::string committed_line(std::int64_t step);

/// Whether `line` is the one that a point waits for.
bool is_reached(const KillPoint& point, const std::string& line);

}  // namespace runner::cli

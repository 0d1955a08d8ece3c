#include "runner/cli/proof/prover.h"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <random>
#include <thread>
#include <utility>

#include "runner/cli/proof/kill_plan.h"
#include "runner/cli/session.h"
#include "runner/core/clock.h"
#include "runner/core/error.h"
#include "runner/core/platform/process.h"
#include "runner/core/units.h"
#include "runner/review/checkpoint/bitwise_compare.h"
#include "runner/store/lease.h"
#include "runner/store/run_reader.h"

namespace runner::cli {
namespace {

namespace fs = std::filesystem;

using core::Process;

constexpr std::int64_t kPatience_ms = 60'000;  ///< in addition to a multiple of the straight run's time
constexpr int kPatienceTimes = 20;
constexpr int kTriesMax = 4;                ///< to kill a run before it ends
constexpr std::size_t kOutputShown = 2000;  ///< the last output of a failed run

/// One start of the program, until it ends or is killed.
struct Outcome {
  int status = 0;
  bool killed = false;
  bool hung = false;
  std::string resumed_from;  ///< `step-000020`, `the start`; "" if it did not resume
  std::string tail;          ///< its last output
};

class Prover {
 public:
  Prover(Session& session, const ProofOptions& options, std::vector<std::string> arguments, std::string folder)
      : session_(session),
        options_(options),
        arguments_(std::move(arguments)),
        folder_(std::move(folder)),
        random_(options.seed) {}

  void prove() {
    if (!run_straight()) return;
    KillOptions points;
    points.steps = options_.kill_at;
    points.random = options_.kills.value_or(options_.kill_at.empty() ? KillOptions().random : 0);
    points.adversarial = options_.kill_at.empty();
    const std::vector<KillCase> cases = plan_kills(trace_, points, random_);
    if (cases.empty()) return session_.fail("the run is too short to be killed", "train at least two steps");
    for (const KillCase& one : cases) width_ = std::max(width_, one.what.size());
    std::printf("%-4s %-*s  %-12s  %s\n", "#", static_cast<int>(width_), "killed", "resumed from", "result");
    for (std::size_t i = 0; i < cases.size(); ++i) try_case(i + 1, cases[i]);
    say_verdict(cases.size());
  }

 private:
  /// A child that the killed process had just forked holds the lock of its run until it is gone too.
  static void wait_until_free(const std::string& output_dir) {
    const core::Clock& clock = core::system_clock();
    const std::int64_t give_up_ns = clock.monotonic_ns() + kPatience_ms * 1'000'000;
    std::error_code ignored;
    for (const auto& run : fs::directory_iterator(output_dir, ignored)) {
      while (store::live_owner(run.path().string(), clock) && clock.monotonic_ns() < give_up_ns) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
    }
  }

  Outcome start(const std::string& output_dir, const KillPoint* kill, Trace* trace) {
    std::vector<std::string> command = arguments_;
    command.insert(command.end(), {"--output-dir", output_dir});
    const core::Clock& clock = core::system_clock();
    const std::int64_t begin_ns = clock.monotonic_ns();
    const auto elapsed_us = [&] { return (clock.monotonic_ns() - begin_ns) / 1000; };
    Process process(command, {{"NO_COLOR", "1"}, {"ROUX_COMMANDS", "off"}});
    Outcome outcome;
    // Counts from the line that the point waits for; without that line the run is not killed.
    std::optional<std::int64_t> kill_us;
    if (kill != nullptr && kill->line.empty()) kill_us = kill->delay_us;
    const std::int64_t give_up_us = straight_us_ == 0 ? INT64_MAX : kPatience_ms * 1000 + kPatienceTimes * straight_us_;
    for (std::string line;;) {
      const std::int64_t next_us = kill_us && !outcome.killed ? *kill_us : give_up_us;
      const std::int64_t wait_us = std::max<std::int64_t>(next_us - elapsed_us(), 0);
      const Process::Read read = process.read_line(line, std::min<std::int64_t>((wait_us + 999) / 1000, INT32_MAX));
      if (read == Process::Read::kEnd) break;
      if (read == Process::Read::kLine) {
        if (trace != nullptr) trace->read_line(line, elapsed_us());
        note(line, outcome);
        if (kill != nullptr && !kill_us && is_reached(*kill, line)) kill_us = elapsed_us() + kill->delay_us;
      }
      if (kill_us && !outcome.killed && elapsed_us() >= *kill_us) {
        process.send(SIGKILL);
        outcome.killed = true;
      } else if (elapsed_us() >= give_up_us) {
        process.send(SIGKILL);
        outcome.hung = true;
      }
    }
    outcome.status = process.wait();
    outcome.killed = outcome.killed && outcome.status == 128 + SIGKILL;  // it may have ended before
    if (outcome.killed) wait_until_free(output_dir);
    if (trace != nullptr) trace->ended_us = elapsed_us();
    return outcome;
  }

  static void note(const std::string& line, Outcome& outcome) {
    outcome.tail += line + "\n";
    if (outcome.tail.size() > 2 * kOutputShown) outcome.tail.erase(0, outcome.tail.size() - kOutputShown);
    if (line.find("resuming ") == std::string::npos) return;
    const std::size_t at = line.rfind("/step-");
    outcome.resumed_from = at == std::string::npos ? "the start" : line.substr(at + 1);
  }

  static std::optional<std::string> only_run_of(const std::string& output_dir) {
    const auto runs = store::list_runs(output_dir, core::system_clock(), {.with_recipe = false});
    if (runs.size() != 1 || runs.front().status != store::RunStatus::kFinished) return std::nullopt;
    return runs.front().run_dir;
  }

  bool run_straight() {
    std::printf("training a straight run, without kills ...\n");
    std::fflush(stdout);
    const Outcome outcome = start(folder_ + "/straight", nullptr, &trace_);
    if (outcome.status != core::kExitDone) {
      std::fputs(outcome.tail.c_str(), stderr);
      session_.fail("the straight run ended with exit status " + std::to_string(outcome.status), "",
                    outcome.status == core::kExitUsage ? core::kExitUsage : core::kExitFailed);
      return false;
    }
    straight_us_ = trace_.ended_us;
    straight_ = only_run_of(folder_ + "/straight").value();
    std::printf("  %zu steps, %zu saves, %zu evaluations in %s\n", trace_.trained.size(), trace_.saving.size(),
                trace_.evaluating.size(), core::format_duration(static_cast<double>(straight_us_) * 1e-6).c_str());
    std::fflush(stdout);
    return true;
  }

  void try_case(std::size_t number, KillCase one) {
    const std::string output_dir = folder_ + "/case-" + std::to_string(number);
    std::string result, resumed_from;
    for (int attempt = 0; attempt < kTriesMax && result.empty(); ++attempt) {
      std::error_code ignored;
      fs::remove_all(output_dir, ignored);
      result = run_case(one, output_dir, resumed_from);
      // The line came too late, or the delay was longer than the rest of the run: try again with a shorter delay.
      if (result.empty()) one.kills.back().delay_us /= 4;
    }
    if (result.empty()) result = "ended before it could be killed";
    std::printf("%-4zu %-*s  %-12s  %s\n", number, static_cast<int>(width_), one.what.c_str(), resumed_from.c_str(),
                result.c_str());
    std::fflush(stdout);
    if (result == kSame) {
      ++same_;
      if (!options_.keep) {
        std::error_code ignored;
        fs::remove_all(output_dir, ignored);
      }
    } else {
      bad_.push_back(output_dir);
    }
  }

  /// "" when the run ended before any of its kills.
  std::string run_case(const KillCase& one, const std::string& output_dir, std::string& resumed_from) {
    resumed_from.clear();
    int kills = 0;
    const auto note_start = [&](const Outcome& outcome) {
      if (!outcome.resumed_from.empty()) resumed_from += (resumed_from.empty() ? "" : ", ") + outcome.resumed_from;
    };
    for (const KillPoint& point : one.kills) {
      const Outcome outcome = start(output_dir, &point, nullptr);
      note_start(outcome);
      if (outcome.killed) {
        ++kills;
      } else if (outcome.status == core::kExitDone) {
        break;  // the rest of the run may be shorter than the kills that are left
      } else {
        return went_wrong(outcome);
      }
    }
    if (kills == 0) return "";
    kills_ += kills;
    if (!only_run_of(output_dir)) {
      const Outcome last = start(output_dir, nullptr, nullptr);
      note_start(last);
      if (last.status != core::kExitDone) return went_wrong(last);
    }
    if (resumed_from.empty()) resumed_from = "-";
    return compare(output_dir);
  }

  std::string went_wrong(const Outcome& outcome) {
    std::fputs(outcome.tail.c_str(), stderr);
    return outcome.hung ? "hung" : "exit status " + std::to_string(outcome.status);
  }

  std::string compare(const std::string& output_dir) {
    // A process killed within its first milliseconds leaves a folder without a run.
    std::optional<std::string> run;
    for (const auto& found : store::list_runs(output_dir, core::system_clock(), {.with_recipe = false})) {
      if (found.status == store::RunStatus::kFinished) run = found.run_dir;
    }
    if (!run) return "no finished run";
    const auto difference = review::compare_runs(straight_, *run);
    if (!difference) return "cannot be compared: " + difference.failure().message;
    if (!difference.value().found.empty()) return difference.value().found.front();
    compared_ = difference.value();
    return kSame;
  }

  void say_verdict(std::size_t cases) {
    if (same_ == cases) {
      std::printf(
          "\n%zu runs with %d kills: each ended bit-identical to the straight run"
          " (%lld tensors, %lld points of metrics)\n",
          cases, kills_, static_cast<long long>(compared_.tensors), static_cast<long long>(compared_.points));
      return;
    }
    std::printf("\n%zu of %zu runs ended bit-identical to the straight run\n", same_, cases);
    std::fflush(stdout);
    if (const std::string noise = noise_of_the_recipe(); !noise.empty()) {
      return session_.fail("two runs without kills differ: " + noise,
                           "try deterministic: true, one thread, or a training set in memory; resuming is not the "
                           "cause",
                           core::kExitFailed);
    }
    session_.fail("a killed run differs from the straight run; see " + bad_.front(),
                  "repeat the same kills with --seed " + std::to_string(options_.seed), core::kExitFailed);
  }

  /// What differs between two runs without kills; "" when nothing does.
  std::string noise_of_the_recipe() {
    const std::string output_dir = folder_ + "/straight-again";
    if (start(output_dir, nullptr, nullptr).status != core::kExitDone) return "";
    const std::string result = compare(output_dir);
    return result == kSame ? "" : result;
  }

  static constexpr const char* kSame = "identical";

  Session& session_;
  const ProofOptions& options_;
  const std::vector<std::string> arguments_;
  const std::string folder_;
  std::mt19937_64 random_;
  Trace trace_;
  std::string straight_;
  std::int64_t straight_us_ = 0;
  review::BitwiseDifference compared_;
  std::size_t same_ = 0, width_ = 6;
  int kills_ = 0;
  std::vector<std::string> bad_;
};

}  // namespace

void prove(Session& session, const ProofOptions& options, std::vector<std::string> arguments, std::string folder) {
  Prover(session, options, std::move(arguments), std::move(folder)).prove();
}

}  // namespace runner::cli

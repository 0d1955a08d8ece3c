#pragma once

#include <cstdint>
#include <string>

#include "runner/core/node.h"
#include "runner/terminal/text.h"
#include "tests/runner/store/fixture.h"

namespace review_test {

using store_test::FixedClock;
using store_test::OutputDir;

inline constexpr runner::terminal::Terminal kPlain{.width = 0, .unicode = false, .color = false};

struct RecordedRun {
  std::string id, run_dir;
};

/// A run of three steps with a loss, an accuracy, a rate and a text, which took 90 s and ended 30 s ago.
inline RecordedRun record_run(const OutputDir& output, FixedClock& clock, const std::string& name,
                              const std::string& resolved, double loss, bool smoke = false) {
  runner::store::NewRun run = store_test::new_run(output, name);
  run.resolved_json = resolved;
  run.smoke = smoke;
  auto writer = store_test::create(run, clock);
  for (std::int64_t step = 1; step <= 3; ++step) {
    store_test::log(*writer, "loss", step, loss + static_cast<double>(3 - step));
  }
  store_test::log(*writer, "val/accuracy", 3, 0.25);
  store_test::log(*writer, "lr", 3, 3e-4);
  runner::core::Node sample = runner::core::Node::mapping();
  sample.set("text", runner::core::Node::string("to be\nor\tnot \x1b[31m"));
  writer->event("text", 3, sample);
  const RecordedRun recorded{writer->run_id(), writer->run_dir()};
  clock.now_ms += 90'000;
  writer->finish(runner::store::RunStatus::kFinished, "3 steps are done");
  clock.now_ms += 30'000;
  return recorded;
}

/// Ids and the temporary folder hold chance; what is compared whole has names instead.
inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

}  // namespace review_test

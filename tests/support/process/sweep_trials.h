#pragma once

#include <sched.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runner/core/clock.h"
#include "runner/core/json.h"
#include "runner/store/database/text.h"
#include "runner/store/lease.h"
#include "runner/store/run_files.h"
#include "runner/store/run_reader.h"
#include "tests/support/process/test_run.h"

namespace tests {

/// What `roux sweep export` says of each trial, without names and times.
inline std::vector<std::string> trials_of(const TestRun& test, const std::string& sweep = "last") {
  const auto exported = test.roux({"sweep", "export", sweep, "--format", "json"});
  INFO(exported.output);
  REQUIRE(exported.status == 0);
  const runner::core::Node root = runner::core::parse_json(exported.output).value();
  std::vector<std::string> list;
  for (runner::core::Node trial : root.find("trials")->items()) {
    for (const char* key : {"run", "started_ms", "ended_ms"}) trial.erase(key);
    list.push_back(runner::core::to_json(trial, -1));
  }
  return list;
}

/// Finished runs of each trial.
inline std::map<std::string, int> finished_runs(const TestRun& test) {
  const auto listed = test.roux({"runs", "list", "--format", "json"});
  REQUIRE(listed.status == 0);
  std::map<std::string, int> count;
  const runner::core::Node runs = runner::core::parse_json(listed.output).value();
  for (const runner::core::Node& run : runs.items()) {
    if (run.find("status")->as_string() == "finished") ++count[run.find("name")->as_string()];
  }
  return count;
}

/// The trials of `test` are those of an undisturbed sweep, and each of them was trained to its end once.
inline void check_nothing_is_lost_or_doubled(const TestRun& test, const std::vector<std::string>& undisturbed,
                                             const std::string& sweep = "last") {
  CHECK(trials_of(test, sweep) == undisturbed);
  const auto runs = finished_runs(test);
  CHECK(runs.size() == undisturbed.size());
  for (const auto& [name, count] : runs) {
    INFO(name);
    CHECK(count == 1);
  }
}

/// Who trains this trial now, waited for; nothing when its run has ended before anybody looked.
inline std::optional<runner::store::LeaseOwner> owner_of_trial(const TestRun& test, const std::string& trial) {
  for (;; sched_yield()) {
    for (const auto& entry : std::filesystem::directory_iterator(test.path() / "runs")) {
      const auto name = runner::store::parse_folder_name(entry.path().filename().string());
      if (!name || !name->run_name.ends_with("-" + trial)) continue;
      const auto owner = runner::store::live_owner(entry.path().string(), runner::core::system_clock());
      if (owner && owner->pid > 0) return owner;  // it may not have written down yet who it is
      if (runner::store::read_run(entry.path().string()).status == runner::store::RunStatus::kFinished) return {};
    }
  }
}

}  // namespace tests

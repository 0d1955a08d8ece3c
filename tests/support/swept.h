#pragma once

#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

#include "runner/core/json.h"
#include "tests/support/run_place.h"

namespace tests {

/// What `roux sweep export` says of each trial, without names and times.
inline std::vector<std::string> trials_of(const RunPlace& place, const std::string& sweep = "last") {
  const auto exported = place.roux({"sweep", "export", sweep, "--format", "json"});
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
inline std::map<std::string, int> finished_runs(const RunPlace& place) {
  const auto listed = place.roux({"runs", "list", "--format", "json"});
  REQUIRE(listed.status == 0);
  std::map<std::string, int> count;
  const runner::core::Node runs = runner::core::parse_json(listed.output).value();
  for (const runner::core::Node& run : runs.items()) {
    if (run.find("status")->as_string() == "finished") ++count[run.find("name")->as_string()];
  }
  return count;
}

/// The trials of `place` are those of a sweep that nobody disturbed, and each of them was trained to its end once.
inline void check_nothing_is_lost_or_doubled(const RunPlace& place, const std::vector<std::string>& undisturbed,
                                             const std::string& sweep = "last") {
  CHECK(trials_of(place, sweep) == undisturbed);
  const auto runs = finished_runs(place);
  CHECK(runs.size() == undisturbed.size());
  for (const auto& [name, count] : runs) {
    INFO(name);
    CHECK(count == 1);
  }
}

}  // namespace tests

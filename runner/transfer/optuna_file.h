#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runner/core/node.h"
#include "runner/core/result.h"
#include "runner/store/run_reader.h"

namespace runner::transfer {

/// A parameter as Optuna keeps it: a number, of a choice its position, with the distribution that it was drawn from.
struct OptunaParameter {
  std::string name;
  double value = 0;
  core::Node distribution;  ///< {name: FloatDistribution, attributes: {low, high, log, step}}, and so on
};

struct OptunaTrial {
  std::string state;                          ///< COMPLETE, PRUNED, FAIL, RUNNING, WAITING
  std::int64_t started_ms = 0, ended_ms = 0;  ///< 0: not yet
  std::vector<OptunaParameter> parameters = {};
  std::vector<double> values = {};  ///< one for each objective; none where it has not come so far
  std::vector<store::SeriesPoint> curve = {};
  std::vector<std::pair<std::string, core::Node>> attributes = {};  ///< of the user
};

struct OptunaStudy {
  std::string name;
  std::vector<bool> maximize;                  ///< by objective
  std::vector<std::string> metric_names = {};  ///< by objective; empty where they have none
  std::vector<OptunaTrial> trials = {};
};

/// Writes a database that `optuna.load_study(storage="sqlite:///PATH")` takes: the tables of Optuna 3.2 to 5.0. Failure
/// when `path` exists, or on disk errors.
core::Result<void> write_optuna(const std::string& path, const OptunaStudy& study);

/// Reads one of the studies of such a database; `name` may be "" if there is only one. The Failure lists them.
core::Result<OptunaStudy> read_optuna(const std::string& path, const std::string& name);

}  // namespace runner::transfer

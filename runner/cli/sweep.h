#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runner/cli/session.h"
#include "runner/sweep/studies.h"
#include "runner/terminal/text.h"

namespace runner::cli {

struct SweepRunFlags {
  RecipeFlags recipe;
  std::vector<std::string> varied;  ///< `optimizer.lr=1e-4,3e-4`
  std::optional<std::int64_t> n_trials, max_concurrent_trials;
  std::string sampler;
  bool start_anew = false, dry_run = false;
};

/// The sweep that the command line asks for; nothing after saying what is wrong with it.
std::optional<sweep::Sweep> read_sweep(Session& session, const SweepRunFlags& flags);
/// `roux sweep run`.
void sweep_run(Session& session, SweepRunFlags& flags);
/// How a worker goes about it.
struct SweepWorkFlags {
  std::string name = "last";
  std::int64_t concurrent = 0;  ///< trials at once; 0: as the recipe says
  bool no_wait = false;
};
/// `roux sweep work`, and `resume`, which is the same.
void sweep_work(Session& session, const SweepWorkFlags& flags);

/// `roux sweep replay`: of the best trial unless one is given.
void sweep_replay(Session& session, const std::string& name, const std::optional<std::int64_t>& trial);

/// A study and the sweep that it records, or nothing after saying why.
std::optional<sweep::OpenSweep> open_sweep(Session& session, const std::string& name);
/// The same, but of one whose recipe trains what its trials were: not of a study that was imported without a recipe.
std::optional<sweep::OpenSweep> open_trainable_sweep(Session& session, const std::string& name);

/// `optimizer.lr=1e-4,3e-4`, `model.n_layer=2..6`, `training.clip_grad_norm=0..1:0.25`, `optimizer.lr=1e-5..1e-2:log`
/// as what `--set` puts under `sweep.parameters`. Failure says what is wrong with it.
core::Result<std::string> varied_as_set(const std::string& text);

}  // namespace runner::cli

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runner/core/clock.h"
#include "runner/core/diagnostics.h"
#include "runner/core/language/expression.h"
#include "runner/core/node.h"
#include "runner/store/run_reader.h"

namespace runner::query {

/// The value of a name in a run: `status`, `step`, ... (built in), a metric (`val/loss`; `train/` may be written before
/// the loop's own), a key of its summary (`summary.steps_per_s`), or a path of its recipe (`optimizer.lr`; a component
/// gives its type). In this order. Nothing if the run has no such value; never a mapping or a null.
std::optional<core::Node> run_value(const store::RunSummary& run, const std::string& name, const core::Clock& clock);

/// The built-in names of run_value.
const std::vector<std::string>& builtin_names();
/// All names with a value in at least one run, for suggestions.
std::vector<std::string> known_names(const std::vector<store::RunSummary>& runs);
/// Whether `name` needs the runs' recipes, given their other values.
bool needs_recipe(const std::vector<store::RunSummary>& runs, const std::string& name, const core::Clock& clock);

/// `val/loss < 2 and optimizer.type == "adamw" and not (status == failed or name ~ smoke)`.
///
/// In the language of core/language/expression.h; names are those of run_value(). A name alone asks whether it is there
/// and not false, `tag:exp-*` for a tag. `created` and `ended` are compared with a date as far as it goes (2026-11,
/// 2026-11-21, 2026-11-21T08:30, today, yesterday; UTC). A run without a name matches no comparison with it, except
/// `is null`; NaN matches only `!=` and `== nan`; other values are neither less nor more than a number.
class Filter {
 public:
  static std::optional<Filter> parse(const std::string& text, core::Diagnostics& diagnostics);
  /// Those of its names for which needs_recipe() holds.
  std::vector<std::string> recipe_names(const std::vector<store::RunSummary>& runs, const core::Clock& clock) const;
  /// Whether the filter uses this name: then it does not hide runs by default.
  bool names(const std::string& name) const;
  /// Reports names that no run has, with a suggestion. Nothing without runs.
  void check_names(const std::vector<store::RunSummary>& runs, const core::Clock& clock,
                   core::Diagnostics& diagnostics) const;
  bool accepts(const store::RunSummary& run, const core::Clock& clock) const;

 private:
  Filter(std::shared_ptr<const core::Source> source, std::shared_ptr<const core::Term> root)
      : source_(std::move(source)), root_(std::move(root)) {}

  std::shared_ptr<const core::Source> source_;
  std::shared_ptr<const core::Term> root_;
};

/// The same check for a name given elsewhere (`--sort`, `--columns`).
bool check_name(const std::string& name, const core::Location& location, const std::vector<store::RunSummary>& runs,
                const core::Clock& clock, core::Diagnostics& diagnostics);

/// Seconds that a run took, or takes until now; of one that was resumed and has ended, those in which it trained.
double run_seconds(const store::RunSummary& run, const core::Clock& clock);

}  // namespace runner::query

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runner/core/clock.h"
#include "runner/core/diagnostics.h"
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
/// Comparisons: == != < <= > >=, ~ for "contains, whatever the case", =~ for a POSIX extended regular expression, `in
/// (a, b)` and `not in`. Left a name, right a number, a word, "text", true, false or null; a name alone asks whether it
/// is there and not false. `tag:keep` and `tag:exp-*` ask for a tag. `created` and `ended` are compared with a date as
/// far as it goes (2026-11, 2026-11-21, 2026-11-21T08:30, today, yesterday; UTC). Precedence: not, and, or;
/// parentheses. A run without a name matches no comparison with it, except `== null`; NaN matches only `!=` and `==
/// nan`; other values are neither less nor more than a number. Names with other characters than letters, digits and _ .
/// / - [ ] : * need back quotes.
class Filter {
 public:
  static std::optional<Filter> parse(const std::string& text, core::Diagnostics& diagnostics);
  ~Filter();
  Filter(Filter&&) noexcept;
  Filter& operator=(Filter&&) noexcept;

  /// Those of its names for which needs_recipe() holds.
  std::vector<std::string> recipe_names(const std::vector<store::RunSummary>& runs, const core::Clock& clock) const;
  /// Whether the filter uses this name: then it does not hide runs by default.
  bool names(const std::string& name) const;
  /// Reports names that no run has, with a suggestion. Nothing without runs.
  void check_names(const std::vector<store::RunSummary>& runs, const core::Clock& clock,
                   core::Diagnostics& diagnostics) const;
  bool accepts(const store::RunSummary& run, const core::Clock& clock) const;

  struct Expression;

 private:
  Filter();
  std::unique_ptr<Expression> root_;
};

/// The same check for a name given elsewhere (`--sort`, `--columns`).
bool check_name(const std::string& name, const core::Location& place, const std::vector<store::RunSummary>& runs,
                const core::Clock& clock, core::Diagnostics& diagnostics);

}  // namespace runner::query

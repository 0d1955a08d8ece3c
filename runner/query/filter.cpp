#include "runner/query/filter.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "runner/core/language/name_map.h"
#include "runner/core/text/suggest.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
#include "runner/core/units.h"
#include "runner/store/database/text.h"
#include "runner/store/run_writer.h"

namespace runner::query {
namespace {

using core::lower;
using core::Node;
using core::Term;
using Op = Term::Op;

template <typename T>
bool ordered(Op op, const T& left, const T& right) {
  switch (op) {
    case Op::kEqual: return left == right;
    case Op::kNotEqual: return left != right;
    case Op::kLess: return left < right;
    case Op::kLessEqual: return left <= right;
    case Op::kGreater: return left > right;
    default: return left >= right;
  }
}

bool is_time(const std::string& name) { return name == "created" || name == "ended"; }

/// `created == 2026-11-21` holds all day: times are compared as far as the literal goes.
bool compare_times(const std::string& value, Op op, const std::string& literal, const core::Clock& clock) {
  constexpr std::int64_t kDayMs = 86'400'000;
  std::string date = store::date_prefix(literal).value_or(literal);
  if (literal == "today") date = store::utc_date(clock.wall_ms());
  if (literal == "yesterday") date = store::utc_date(clock.wall_ms() - kDayMs);
  if (op == Op::kContains) return value.find(date) != std::string::npos;
  return ordered(op, value.substr(0, date.size()), date);
}

bool compare(const std::string& name, Op op, const std::optional<Node>& value, const Term& literal,
             const core::Clock& clock) {
  if (literal.op == Op::kNull) return op == Op::kEqual && !value;
  if (!value) return false;
  if (is_time(name)) return compare_times(value->scalar_text(), op, literal.text, clock);
  if (op == Op::kContains) return lower(value->scalar_text()).find(lower(literal.text)) != std::string::npos;
  if (value->is_number() && literal.op == Op::kText) {  // `age < 2h`
    const auto seconds = core::parse_duration_s(literal.text);
    return seconds ? ordered(op, value->as_double(), seconds.value()) : op == Op::kNotEqual;
  }
  if (value->is_number() && literal.op == Op::kNumber) {
    const double left = value->as_double(), right = literal.number;
    if (std::isnan(left) && std::isnan(right)) return op == Op::kEqual;  // `val/loss == nan` asks for it
    return ordered(op, left, right);
  }
  // `auto` is incomparable with 0.1.
  if (literal.op == Op::kNumber && op != Op::kEqual && op != Op::kNotEqual) return false;
  if (value->is_bool() && (literal.op == Op::kTrue || literal.op == Op::kFalse)) {
    return ordered(op, value->as_bool(), literal.op == Op::kTrue);
  }
  return ordered(op, value->scalar_text(), literal.text);
}

bool is_true(const std::optional<Node>& value) {
  if (!value) return false;
  if (value->is_bool()) return value->as_bool();
  if (value->is_number()) return value->as_double() != 0;
  return !value->scalar_text().empty();
}

bool has_tag(const store::RunSummary& run, const std::string& wanted) {
  return std::any_of(run.tags.begin(), run.tags.end(),
                     [&](const std::string& tag) { return core::matches_wildcard(wanted, tag); });
}

/// The values of a run. What it lacks is false, and so known: `not x > 1` takes the runs without x.
class RunValues final : public core::Evaluator {
 public:
  RunValues(const store::RunSummary& run, const core::Clock& clock) : run_(run), clock_(clock) {}

  std::optional<bool> truth(const Term& term) const override {
    if (term.op == Op::kTag) return has_tag(run_, term.text);
    if (term.op == Op::kName) return is_true(run_value(run_, term.text, clock_));
    const std::string& name = term.terms.front()->text;
    const std::optional<Node> value = run_value(run_, name, clock_);
    const auto compares = [&](Op op, std::size_t i) { return compare(name, op, value, *term.terms[i], clock_); };
    const auto is_member = [&] {
      for (std::size_t i = 1; i < term.terms.size(); ++i) {
        if (compares(Op::kEqual, i)) return true;
      }
      return false;
    };
    switch (term.op) {
      case Op::kIsNull: return !value;
      case Op::kIsNotNull: return value.has_value();
      case Op::kIn: return is_member();
      case Op::kNotIn: return value && !is_member();
      case Op::kMatches: return value && term.pattern->is_in(value->scalar_text());
      default: return compares(term.op, 1);
    }
  }

 private:
  const store::RunSummary& run_;
  const core::Clock& clock_;
};

void for_each_leaf(const Term& term, const std::function<void(const Term&)>& visit) {
  const bool is_leaf = term.op != Op::kOr && term.op != Op::kAnd && term.op != Op::kNot;
  if (is_leaf) return visit(term);
  for (const auto& part : term.terms) for_each_leaf(*part, visit);
}

std::string name_of(const Term& leaf) {
  if (leaf.op == Op::kTag) return "tags";
  return leaf.terms.empty() ? leaf.text : leaf.terms.front()->text;
}

core::Location location_of(const std::shared_ptr<const core::Source>& source, std::size_t at, std::size_t width) {
  const std::string_view text = source->text, before = text.substr(0, at);
  const std::size_t line_begin = before.rfind('\n') + 1;  // npos + 1 is 0
  const auto line = static_cast<int>(std::count(before.begin(), before.end(), '\n'));
  const auto column = static_cast<int>(core::count_code_points(before.substr(line_begin)));
  const auto columns = static_cast<int>(core::count_code_points(text.substr(at, width)));
  return {source, line + 1, column + 1, std::max(columns, 1)};
}

/// Reports all problems of a filter at their locations.
class FilterCheck {
 public:
  FilterCheck(std::shared_ptr<const core::Source> source, core::Diagnostics& diagnostics)
      : source_(std::move(source)), diagnostics_(diagnostics) {}

  void tell(const core::ExpressionProblem& problem) {
    if (!problem.message.empty()) return refuse(problem.at, problem.width, problem.message, problem.hint);
    const std::string there =
        problem.at >= source_->text.size() ? "it ends" : "there is `" + core::escape_for_terminal(problem.there) + "`";
    const std::string hint = problem.there == "&"   ? "write `and`"
                             : problem.there == "|" ? "write `or`"
                                                    : "for example: val/loss < 2 and optimizer.type == \"adamw\" and "
                                                      "status == finished";
    refuse(problem.at, problem.width, "the filter needs " + problem.wanted + " where " + there, hint);
  }

  /// The possible values of some names are known: any other word is a typo.
  void literals(const Term& leaf) {
    const std::string name = name_of(leaf);
    const bool is_list = leaf.op == Op::kIn || leaf.op == Op::kNotIn;
    const Op op = is_list ? Op::kEqual : leaf.op;
    for (std::size_t i = 1; i < leaf.terms.size(); ++i) {
      const Term& literal = *leaf.terms[i];
      if (literal.op != Op::kNull) check(name, op, literal, literal.text);
    }
  }

 private:
  void refuse(std::size_t at, std::size_t width, const std::string& message, const std::string& hint) {
    diagnostics_.error(location_of(source_, at, width), message, hint);
  }
  void refuse(const Term& literal, const std::string& message, const std::string& hint) {
    refuse(literal.at, literal.width, message, hint);
  }

  void check(const std::string& name, Op op, const Term& literal, const std::string& text) {
    if (is_time(name)) {
      if (store::date_prefix(text)) return;
      refuse(literal, "\"" + core::escape_for_terminal(text) + "\" is not a date",
             "write 2026-11-21, 2026-11-21T08:30 (UTC), today or yesterday; `age < 2h` counts from now");
    } else if (name == "age" || name == "duration") {
      if (op == Op::kContains || literal.op == Op::kNumber) return;
      const auto seconds = core::parse_duration_s(text);
      if (!seconds) refuse(literal, seconds.failure().message, seconds.failure().hint);
    } else if (name == "step" || name == "branch") {
      if (op == Op::kContains || literal.op == Op::kNumber) return;
      refuse(literal, name + " is a number, but " + core::quote(text) + " is not", "for example: " + name + " >= 100");
    } else if (name == "status" && (op == Op::kEqual || op == Op::kNotEqual)) {
      const std::vector<std::string> known = store::status_texts();
      if (std::find(known.begin(), known.end(), text) != known.end()) return;
      const std::string near = core::closest(text, known);
      refuse(literal, "no run has the status \"" + core::escape_for_terminal(text) + "\"",
             near.empty() ? "it is one of " + core::joined(known) : "did you mean \"" + near + "\"?");
    }
  }

  std::shared_ptr<const core::Source> source_;
  core::Diagnostics& diagnostics_;
};

/// A metric is a number: comparing it with a word would silently match nothing.
void check_metric(const Term& leaf, const core::Location& location, const std::vector<store::RunSummary>& runs,
                  core::Diagnostics& diagnostics) {
  if (leaf.op == Op::kContains || leaf.op == Op::kMatches || leaf.op == Op::kTag) return;
  const std::string name = name_of(leaf);
  const auto word = std::find_if(leaf.terms.begin(), leaf.terms.end(), [](const auto& literal) {
    return literal->op == Op::kText && !core::parse_duration_s(literal->text);
  });
  const auto has_metric = [&](const store::RunSummary& run) { return run.metrics.contains(name); };
  if (word == leaf.terms.end() || std::none_of(runs.begin(), runs.end(), has_metric)) return;
  diagnostics.error(location, "the metric " + name + " is a number, but " + core::quote((*word)->text) + " is not",
                    "nan and inf are numbers; two metrics cannot be compared with each other");
}

}  // namespace

std::optional<Filter> Filter::parse(const std::string& text, core::Diagnostics& diagnostics) {
  auto source = std::make_shared<const core::Source>(core::Source{"--filter", text, core::Source::Kind::kFlag});
  FilterCheck check(source, diagnostics);
  core::ExpressionProblem problem;
  auto root = core::read_expression(text, core::Names::kMetrics, problem);
  if (!root) {
    check.tell(problem);
    return std::nullopt;
  }
  const int errors_before = diagnostics.error_count();
  for_each_leaf(*root, [&](const Term& leaf) { check.literals(leaf); });
  if (diagnostics.error_count() > errors_before) return std::nullopt;
  return Filter(std::move(source), std::move(root));
}

std::vector<std::string> Filter::recipe_names(const std::vector<store::RunSummary>& runs,
                                              const core::Clock& clock) const {
  std::vector<std::string> names;
  for_each_leaf(*root_, [&](const Term& leaf) {
    const std::string name = name_of(leaf);
    if (query::needs_recipe(runs, name, clock)) names.push_back(name);
  });
  return names;
}

bool Filter::names(const std::string& name) const {
  bool found = false;
  for_each_leaf(*root_, [&](const Term& leaf) { found = found || name_of(leaf) == name; });
  return found;
}

void Filter::check_names(const std::vector<store::RunSummary>& runs, const core::Clock& clock,
                         core::Diagnostics& diagnostics) const {
  for_each_leaf(*root_, [&](const Term& leaf) {
    const Term& name = leaf.terms.empty() ? leaf : *leaf.terms.front();
    const core::Location location = location_of(source_, name.at, name.width);
    if (check_name(name_of(leaf), location, runs, clock, diagnostics)) check_metric(leaf, location, runs, diagnostics);
  });
}

bool Filter::accepts(const store::RunSummary& run, const core::Clock& clock) const {
  return core::decide(*root_, RunValues(run, clock)).value_or(false);
}

}  // namespace runner::query

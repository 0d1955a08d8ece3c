#include "runner/query/filter.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <utility>

#include "runner/core/language/name_map.h"
#include "runner/core/text.h"
#include "runner/core/units.h"
#include "runner/core/utf8.h"
#include "runner/query/filter_expression.h"
#include "runner/store/database/text.h"

namespace runner::query {
namespace {

using Expression = Filter::Expression;
using core::lower;
using core::Node;

template <typename T>
bool ordered(const std::string& operation, const T& left, const T& right) {
  if (operation == "==") return left == right;
  if (operation == "!=") return left != right;
  if (operation == "<") return left < right;
  if (operation == "<=") return left <= right;
  if (operation == ">") return left > right;
  return left >= right;
}

/// `created == 2026-11-21` holds all day: times are compared as far as the literal goes.
bool compare_times(const std::string& value, const std::string& operation, const std::string& literal,
                   const core::Clock& clock) {
  constexpr std::int64_t kDayMs = 86'400'000;
  std::string date = literal;
  if (literal == "today") date = store::utc_date(clock.wall_ms());
  if (literal == "yesterday") date = store::utc_date(clock.wall_ms() - kDayMs);
  if (operation == "~") return value.find(date) != std::string::npos;
  return ordered(operation, value.substr(0, date.size()), date);
}

bool compare(const Expression& expression, const std::optional<Node>& value, const Node& literal,
             const core::Clock& clock) {
  const std::string& operation = expression.operation;
  if (literal.is_null()) return operation == "==" ? !value : operation == "!=" && value.has_value();
  if (!value) return false;
  if (expression.name == "created" || expression.name == "ended") {
    return compare_times(value->scalar_text(), operation, literal.scalar_text(), clock);
  }
  if (operation == "~") {
    return lower(value->scalar_text()).find(lower(literal.scalar_text())) != std::string::npos;
  }
  if (value->is_number() && literal.is_string()) {  // `age < 2h`
    const auto seconds = core::parse_duration_s(literal.as_string());
    return seconds ? ordered(operation, value->as_double(), seconds.value()) : operation == "!=";
  }
  if (value->is_number() && literal.is_number()) {
    const double left = value->as_double(), right = literal.as_double();
    if (std::isnan(left) && std::isnan(right)) return operation == "==";  // `val/loss == nan` asks for it
    return ordered(operation, left, right);
  }
  // `auto` is no more and no less than 0.1.
  if (literal.is_number() && operation != "==" && operation != "!=") return false;
  if (value->is_bool() && literal.is_bool()) return ordered(operation, value->as_bool(), literal.as_bool());
  return ordered(operation, value->scalar_text(), literal.scalar_text());
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

bool asks(const Expression& expression, const store::RunSummary& run, const core::Clock& clock) {
  if (expression.kind == Expression::Kind::kTag) return has_tag(run, expression.literals.front().as_string());
  const std::optional<Node> value = run_value(run, expression.name, clock);
  const auto equals = [&](const Node& literal) { return compare(expression, value, literal, clock); };
  switch (expression.kind) {
    case Expression::Kind::kCompare: return equals(expression.literals.front());
    case Expression::Kind::kIn: return std::any_of(expression.literals.begin(), expression.literals.end(), equals);
    case Expression::Kind::kNotIn:
      return value && std::none_of(expression.literals.begin(), expression.literals.end(), equals);
    case Expression::Kind::kMatches: return value && expression.pattern->is_in(value->scalar_text());
    default: return is_true(value);
  }
}

bool accepts(const Expression& expression, const store::RunSummary& run, const core::Clock& clock) {
  const auto holds = [&](const auto& part) { return accepts(*part, run, clock); };
  const auto& parts = expression.parts;
  switch (expression.kind) {
    case Expression::Kind::kOr: return std::any_of(parts.begin(), parts.end(), holds);
    case Expression::Kind::kAnd: return std::all_of(parts.begin(), parts.end(), holds);
    case Expression::Kind::kNot: return !holds(parts.front());
    default: return asks(expression, run, clock);
  }
}

void for_each_name(const Expression& expression, const std::function<void(const Expression&)>& visit) {
  if (!expression.name.empty()) visit(expression);
  for (const auto& part : expression.parts) for_each_name(*part, visit);
}

/// A metric is a number: compared with a word it would meet nothing, and nobody would know why.
void check_literals(const Expression& leaf, const std::vector<store::RunSummary>& runs,
                    core::Diagnostics& diagnostics) {
  if (leaf.operation.empty() || leaf.operation == "~") return;
  const auto word = std::find_if(leaf.literals.begin(), leaf.literals.end(), [](const Node& literal) {
    return literal.is_string() && !core::parse_duration_s(literal.as_string());
  });
  const auto has_metric = [&](const store::RunSummary& run) { return run.metrics.contains(leaf.name); };
  if (word == leaf.literals.end() || std::none_of(runs.begin(), runs.end(), has_metric)) return;
  diagnostics.error(leaf.place,
                    "the metric " + leaf.name + " is a number, and " + core::quote(word->as_string()) + " is none",
                    "nan and inf are numbers; two metrics cannot be compared with each other");
}

}  // namespace

Filter::Filter() = default;
Filter::~Filter() = default;
Filter::Filter(Filter&&) noexcept = default;
Filter& Filter::operator=(Filter&&) noexcept = default;

std::optional<Filter> Filter::parse(const std::string& text, core::Diagnostics& diagnostics) {
  Filter filter;
  filter.root_ = parse_filter(text, diagnostics);
  if (!filter.root_) return std::nullopt;
  return filter;
}

std::vector<std::string> Filter::recipe_names(const std::vector<store::RunSummary>& runs,
                                              const core::Clock& clock) const {
  std::vector<std::string> names;
  for_each_name(*root_, [&](const Expression& leaf) {
    if (query::needs_recipe(runs, leaf.name, clock)) names.push_back(leaf.name);
  });
  return names;
}

bool Filter::names(const std::string& name) const {
  bool found = false;
  for_each_name(*root_, [&](const Expression& leaf) { found = found || leaf.name == name; });
  return found;
}

void Filter::check_names(const std::vector<store::RunSummary>& runs, const core::Clock& clock,
                         core::Diagnostics& diagnostics) const {
  for_each_name(*root_, [&](const Expression& leaf) {
    if (check_name(leaf.name, leaf.place, runs, clock, diagnostics)) check_literals(leaf, runs, diagnostics);
  });
}

bool Filter::accepts(const store::RunSummary& run, const core::Clock& clock) const {
  return query::accepts(*root_, run, clock);
}

}  // namespace runner::query

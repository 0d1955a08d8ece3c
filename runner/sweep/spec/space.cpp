#include "runner/sweep/spec/space.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "runner/core/scalar.h"
#include "runner/core/text/text.h"
#include "runner/resolve/recipe.h"
#include "runner/sweep/spec/space_reader.h"

namespace runner::sweep {
namespace {

using core::Node;

/// `optimizer` and `optimizer.type` come before `optimizer.lr`: a new type clears its block.
std::size_t rank_of(const std::string& path) {
  constexpr std::string_view kType = ".type";
  return path.ends_with(kType) ? path.size() - kType.size() : path.size();
}

/// As one word of a command line: text that reads as something else, or would change the line, is quoted.
std::string word_of(const Node& value) {
  if (value.is_sequence() || value.is_mapping()) return core::to_json(value, -1);
  if (!value.is_string()) return value.scalar_text();
  const std::string& text = value.as_string();
  const auto read = core::resolve_scalar(text);
  const bool plain = read && read.value().same_value(value) &&
                     std::none_of(text.begin(), text.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; });
  return plain ? text : core::to_json(value, -1);
}

}  // namespace

std::shared_ptr<const RecipeSpace> RecipeSpace::read(const resolve::Recipe& recipe, const recipe::Composed& open,
                                                     core::Diagnostics& diagnostics) {
  SpaceReader reader(recipe, open, diagnostics);
  const int before = diagnostics.error_count();
  auto space = std::shared_ptr<RecipeSpace>(new RecipeSpace);
  space->parts_ = reader.read();
  for (const SpacePart& part : space->parts_) space->dimensions_.push_back(part.dimension);
  space->constraints_ = reader.constraints();
  space->context_ = reader.context();
  return diagnostics.error_count() == before ? space : nullptr;
}

bool RecipeSpace::is_active(const Point& point, std::size_t index) const {
  const auto& when = parts_[index].when;
  return !when || when->rule.decide(context_of(point, index)).value_or(false);
}

bool RecipeSpace::allows(const Point& point) const {
  if (constraints_.empty()) return true;
  const Node recipe = context_of(point, point.size());
  return std::all_of(constraints_.begin(), constraints_.end(),
                     [&](const Constraint& constraint) { return constraint.rule.holds(recipe); });
}

void RecipeSpace::check_settled(const resolve::Recipe& variant, core::Diagnostics& diagnostics) const {
  for (const Constraint& constraint : constraints_) {
    if (constraint.rule.holds(variant.root)) continue;
    diagnostics.error(constraint.text.location(),
                      "the constraint uses derived keys and is violated after they are resolved",
                      "use the swept keys in the constraint");
  }
}

void RecipeSpace::warn_ineffective(const std::vector<Point>& points, core::Diagnostics& diagnostics) const {
  constexpr const char* kUndecided =
      "it refers to missing or non-comparable values, divides by zero, or is not a boolean expression";
  const auto any = [&points](const auto& shows) { return std::any_of(points.begin(), points.end(), shows); };
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const auto& when = parts_[i].when;
    if (!when || any([&](const Point& point) { return !std::isnan(point[i]); })) continue;
    const bool decided = any([&](const Point& point) { return when->rule.decide(context_of(point, i)).has_value(); });
    diagnostics.warning(when->text.location(), "the condition of " + dimensions_[i].name + " is true in no variant",
                        decided ? "" : kUndecided);
  }
  for (const Constraint& constraint : constraints_) {
    const auto decides = [&](const Point& point) {
      return constraint.rule.decide(context_of(point, point.size())).has_value();
    };
    if (!any(decides)) {
      diagnostics.warning(constraint.text.location(), "the constraint excludes nothing", kUndecided);
    }
  }
}

core::Result<Point> RecipeSpace::locate(const Node& values) const {
  Point point(parts_.size(), std::numeric_limits<double>::quiet_NaN());
  std::size_t used = 0;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const SpacePart& part = parts_[i];
    if (!is_active(point, i)) continue;
    std::vector<Node> given;
    for (const std::string& path : part.paths) {
      const Node* value = values.find(path);
      if (value == nullptr) return core::Failure{"it has no value for " + path};
      given.push_back(*value);
    }
    used += given.size();
    const auto coordinate = part.find(given);
    if (!coordinate) {
      return core::Failure{
          part.dimension.name + " has no value " +
          (given.size() == 1 ? core::to_json(given[0], -1) : core::to_json(Node::sequence(given), -1))};
    }
    point[i] = *coordinate;
  }
  if (used == values.entries().size()) return point;
  return core::Failure{"it sets inactive parameters: " + text(point)};
}

std::optional<double> SpacePart::find(const std::vector<Node>& values) const {
  if (dimension.kind != Dimension::Kind::kChoice) {
    if (!values[0].is_number() || !dimension.has(values[0].as_double())) return std::nullopt;
    return values[0].as_double();
  }
  const auto same = [](const Node& a, const Node& b) { return a.same_value(b); };
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (std::equal(values.begin(), values.end(), choices[i].begin(), choices[i].end(), same))
      return static_cast<double>(i);
  }
  return std::nullopt;
}

void RecipeSpace::add_assignments(const Point& point, std::size_t index, std::vector<Assignment>& list) const {
  if (std::isnan(point[index])) return;
  const SpacePart& part = parts_[index];
  for (std::size_t i = 0; i < part.paths.size(); ++i) {
    const double value = point[index];
    Node node = part.dimension.kind == Dimension::Kind::kChoice ? part.choices[static_cast<std::size_t>(value)][i]
                : part.dimension.kind == Dimension::Kind::kInteger
                    ? Node::integer(static_cast<std::int64_t>(value), part.location)
                    : Node::floating(value, part.location);
    node.add_history("sweep");
    list.push_back({part.paths[i], std::move(node)});
  }
}

std::vector<Assignment> RecipeSpace::assignments(const Point& point) const {
  std::vector<Assignment> list;
  for (std::size_t i = 0; i < point.size(); ++i) add_assignments(point, i, list);
  std::stable_sort(list.begin(), list.end(),
                   [](const Assignment& a, const Assignment& b) { return rank_of(a.path) < rank_of(b.path); });
  return list;
}

std::string RecipeSpace::text(const Point& point) const {
  std::string text;
  for (std::size_t i = 0; i < point.size(); ++i) {
    std::vector<Assignment> list;
    add_assignments(point, i, list);
    for (const Assignment& one : list) text += (text.empty() ? "" : " ") + one.path + "=" + word_of(one.value);
  }
  return text;
}

std::string RecipeSpace::short_text(const Point& point) const {
  std::string text;
  for (std::size_t i = 0; i < point.size(); ++i) {
    std::vector<Assignment> list;
    add_assignments(point, i, list);
    const bool drawn = parts_[i].dimension.kind != Dimension::Kind::kChoice;
    for (const Assignment& one : list) {
      const std::string value = drawn && !one.value.is_integer() ? core::short_number(point[i], 5) : word_of(one.value);
      text += (text.empty() ? "" : " ") + one.path + "=" + value;
    }
  }
  return text;
}

std::string RecipeSpace::value_text(std::size_t dimension, double coordinate) const {
  Point point(parts_.size(), std::numeric_limits<double>::quiet_NaN());
  point[dimension] = coordinate;
  std::vector<Assignment> list;
  add_assignments(point, dimension, list);
  std::string text;
  for (const Assignment& one : list) text += (text.empty() ? "" : ", ") + word_of(one.value);
  return text;
}

/// The recipe as conditions see it, with what the first `count` dimensions set.
Node RecipeSpace::context_of(const Point& point, std::size_t count) const {
  const Point chosen(point.begin(), point.begin() + static_cast<std::ptrdiff_t>(count));
  return context_.with(assignments(chosen));
}

}  // namespace runner::sweep

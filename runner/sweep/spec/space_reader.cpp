#include "runner/sweep/spec/space_reader.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "runner/core/text/suggest.h"
#include "runner/registry/reference/lookup.h"
#include "runner/resolve/consistency.h"
#include "runner/resolve/recipe.h"

namespace runner::sweep {
namespace {

using core::Node;

/// Where the sweep itself puts a trial.
constexpr std::string_view kOwnKeys[] = {"run_name", "output_dir", "recipe_version", "extends", "sweep"};

const Node* given(const Node& block, const char* key) {
  const Node* value = block.find(key);
  return value != nullptr && !value->is_null() ? value : nullptr;
}

bool is_inside(const std::string& path, const std::string& block) {
  return path.starts_with(block) &&
         (path.size() == block.size() || path[block.size()] == '.' || path[block.size()] == '[');
}

/// One of two ways to write a path: `optimizer.lr` of `optimizer["lr"]`.
std::string plain(const std::string& path) { return core::path_text(core::parse_path(path).value()); }

/// Samplers count in doubles, which hold each integer up to this one.
constexpr double kExactMax = 9007199254740992.0;

bool is_whole(const Node& number) { return number.as_double() == std::floor(number.as_double()); }

}  // namespace

void SpaceReader::error(const core::Location& location, std::string message, core::Hint hint) {
  diagnostics_.error(location, std::move(message), std::move(hint));
}

std::vector<SpacePart> SpaceReader::read() {
  const Node& seed = recipe_.at("seed");
  const Node* replicates = given(sweep_, "replicates");
  if (replicates != nullptr && seed.is_integer() &&
      seed.as_integer() > std::numeric_limits<std::int64_t>::max() - replicates->as_integer()) {
    error(seed.location(), "seed is " + seed.scalar_text() + ", and replicates count up from it", "use a smaller seed");
  }
  if (!sweep_.find("paired")->items().empty()) paired();
  for (const Node::Entry& entry : sweep_.find("parameters")->entries()) parameter(entry);
  return parts_;
}

/// Whether nothing else decides about the path.
bool SpaceReader::is_free(const std::string& path, const core::Location& location) {
  const auto steps = core::parse_path(path);
  if (!steps || steps.value().front().is_index()) {
    error(location, "\"" + path + "\" is not a path in a recipe" + (steps ? "" : ": " + steps.failure().message),
          "write section.key, as in optimizer.lr");
    return false;
  }
  const std::string& top = steps.value().front().key;
  if (std::find(std::begin(kOwnKeys), std::end(kOwnKeys), top) != std::end(kOwnKeys)) {
    error(location, top + " cannot be swept", "each trial has its own run_name, and all share the output_dir");
    return false;
  }
  const Node* replicates = given(sweep_, "replicates");
  if (top == "seed" && replicates != nullptr && replicates->as_integer() > 1) {
    error(location, "seed is swept, but replicates already trains each variant with several seeds",
          "remove one of the two");
    return false;
  }
  if (recipe_.root.find(top) == nullptr) {
    std::vector<std::string> keys;
    for (const Node::Entry& entry : recipe_.root.entries()) keys.push_back(entry.key);
    const std::string near = core::closest(top, keys);
    error(location, "a recipe has no key \"" + top + "\"", core::did_you_mean(near));
    return false;
  }
  if (const std::string item = item_of_list(steps.value()); !item.empty()) {
    error(location, path + " names an item of a list by a key", "write " + item);
    return false;
  }
  if (top == "vars" && steps.value().size() > 1 && !is_variable(steps.value()[1], location)) return false;
  for (const SpacePart& part : parts_) {
    for (const std::string& other : part.paths) {
      if (core::path_text(steps.value()) != plain(other)) continue;
      error(location, path + " is swept twice", "keep one of them");
      return false;
    }
  }
  return true;
}

/// `adapters[0].r` for `adapters.0.r`; "" where no key stands for an item of one of the recipe's lists.
std::string SpaceReader::item_of_list(std::vector<core::PathStep> steps) const {
  bool found = false;
  const Node* at = &recipe_.root;
  for (core::PathStep& step : steps) {
    const bool is_number = !step.is_index() && !step.key.empty() && step.key.size() < 10 &&
                           std::all_of(step.key.begin(), step.key.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (at->is_sequence() && is_number) {
      step = {"", std::stol(step.key)};
      found = true;
    }
    const bool is_there = at->is_sequence() && step.index < static_cast<std::int64_t>(at->items().size());
    const Node* next = !step.is_index() ? at->find(step.key)
                       : is_there       ? &at->items()[static_cast<std::size_t>(step.index)]
                                        : nullptr;
    if (next == nullptr) break;
    at = next;
  }
  return found ? core::path_text(steps) : "";
}

/// Nothing could refer to another one.
bool SpaceReader::is_variable(const core::PathStep& step, const core::Location& location) {
  const Node* vars = recipe_.root.find("vars");
  if (vars->find(step.key) != nullptr) return true;
  std::vector<std::string> names;
  for (const Node::Entry& entry : vars->entries()) names.push_back(entry.key);
  const std::string near = core::closest(step.key, names);
  error(location, "vars has no \"" + step.key + "\"",
        near.empty()
            ? core::Hint("write vars: {" + step.key + ": VALUE}, and ${vars." + step.key + "} where it is needed")
            : core::did_you_mean(near));
  return false;
}

void SpaceReader::paired() {
  const std::vector<Node>& entries = sweep_.find("paired")->items();
  SpacePart part;
  part.location = sweep_.find("paired")->location();
  part.dimension.kind = Dimension::Kind::kChoice;
  part.dimension.choices = static_cast<std::int64_t>(entries.size());
  for (const Node::Entry& entry : entries.front().entries()) {
    if (is_free(entry.key, entry.key_location)) part.paths.push_back(entry.key);
    part.dimension.name += (part.dimension.name.empty() ? "" : ", ") + entry.key;
  }
  if (entries.front().entries().empty()) error(entries.front().location(), "an entry of paired sets nothing");
  for (const Node& entry : entries) {
    std::vector<Node>& values = part.choices.emplace_back();
    for (const std::string& path : part.paths) {
      const auto at = static_cast<std::int64_t>(part.choices.size()) - 1;
      if (const Node* value = entry.find(path)) values.push_back(following(*value, {{"paired"}, {"", at}, {path}}));
    }
    const bool same = values.size() == part.paths.size() && entry.entries().size() == entries.front().entries().size();
    if (!same) error(entry.location(), "each entry of paired sets the same keys: " + part.dimension.name);
    if (same && part.find(values) != static_cast<double>(part.choices.size() - 1)) {
      error(entry.location(), "paired has this entry twice", "keep one of them");
    }
  }
  parts_.push_back(std::move(part));
}

void SpaceReader::parameter(const Node::Entry& entry) {
  const auto refused = [](const Node::Entry& key) { return key.value.is_refused(); };
  const bool told_before =
      !entry.value.is_mapping() || std::any_of(entry.value.entries().begin(), entry.value.entries().end(), refused);
  if (told_before) return;
  SpacePart part;
  part.location = entry.value.location();
  part.paths = {entry.key};
  part.dimension.name = entry.key;
  if (!is_free(entry.key, entry.key_location)) return;
  if (const Node* list = given(entry.value, "values")) {
    values(*list, part);
  } else {
    distribution(entry.value, entry.key, part);
  }
  if (const Node* when = given(entry.value, "when")) {
    if (auto condition = expression(*when, false)) part.when = Constraint{*std::move(condition), *when};
  }
  parts_.push_back(std::move(part));
}

void SpaceReader::values(const Node& list, SpacePart& part) {
  part.dimension.kind = Dimension::Kind::kChoice;
  part.dimension.choices = static_cast<std::int64_t>(list.items().size());
  std::set<std::string> texts;
  for (const Node& value : list.items()) {
    const std::string text = core::to_json(value, -1);
    if (!texts.insert(text).second) {
      error(value.location(), part.paths.front() + " has the value " + text + " twice", "keep one of them");
    }
    const auto at = static_cast<std::int64_t>(part.choices.size());
    part.choices.push_back({following(value, {{"parameters"}, {part.paths.front()}, {"values"}, {"", at}})});
  }
}

/// The value as it was written, where that refers to what a variant may change. `path` leads to it in the sweep.
Node SpaceReader::following(const Node& value, const std::vector<core::PathStep>& path) const {
  const Node* written = open_.root.find("sweep");
  if (written != nullptr) written = written->at_path(core::path_text(path));
  if (written == nullptr || !has_references(*written)) return value;
  return *written;
}

/// Whether the recipe's key does; a key of `vars` as it stands.
bool SpaceReader::takes_integers(const std::string& path) const {
  const auto described = registry::find_schema(registry::Registry::builtin(), recipe_.root, path);
  using Type = registry::Property::Type;
  if (described.property != nullptr && described.property->type != Type::kAny) {
    return described.property->type == Type::kInteger;
  }
  const Node* there = recipe_.root.at_path(path);
  return there != nullptr && there->is_integer();
}

void SpaceReader::distribution(const Node& block, const std::string& path, SpacePart& part) {
  Dimension& dimension = part.dimension;
  const Node *kind = given(block, "distribution"), *min = given(block, "min"), *max = given(block, "max"),
             *q = given(block, "q");
  if (q != nullptr) dimension.step = q->as_double();
  std::string name = kind != nullptr ? kind->as_string() : takes_integers(path) ? "int" : "uniform";
  if (name == "log") name = takes_integers(path) ? "log_int" : "log_uniform";
  dimension.log = name.starts_with("log_");
  if (name.ends_with("normal")) return around(block, path, dimension);
  for (const char* key : {"mu", "sigma"}) {
    if (const Node* value = given(block, key)) {
      return error(value->location(), path + " has a " + key + ", which only normal and log_normal use",
                   "give min and max, or distribution: normal");
    }
  }
  if (min == nullptr || max == nullptr) {
    return error(block.location(),
                 path + " has " +
                     (min == nullptr && max == nullptr ? "no values"
                      : min == nullptr                 ? "no min"
                                                       : "no max"),
                 "give values: [...], or min and max");
  }
  between(block, path, name, dimension);
}

void SpaceReader::around(const Node& block, const std::string& path, Dimension& dimension) {
  dimension.kind = Dimension::Kind::kNormal;
  if (const Node* mu = given(block, "mu")) dimension.mu = mu->as_double();
  if (const Node* sigma = given(block, "sigma")) dimension.sigma = sigma->as_double();
  for (const char* key : {"min", "max"}) {
    if (const Node* value = given(block, key)) {
      error(value->location(), path + " has a " + key + ", but a normal distribution is unbounded",
            "give mu and sigma, or distribution: uniform");
    }
  }
  constexpr double kEnd = 8.3;  // no draw is further out, in units of sigma
  const double least = std::exp(dimension.mu - kEnd * dimension.sigma);
  const double most = dimension.log ? std::exp(dimension.mu + kEnd * dimension.sigma) : dimension.sigma;
  if (!std::isfinite(most) || (dimension.log && least == 0)) {
    error(block.location(), path + " exceeds the range of numbers",
          "mu and sigma of log_normal are those of the natural logarithm: mu: -7 is around 0.001");
  }
}

bool SpaceReader::is_exact(const Node& block, const std::string& path) {
  for (const char* key : {"min", "max"}) {
    const Node& end = *block.find(key);
    if (std::abs(end.as_double()) <= kExactMax) continue;
    error(end.location(), path + " is an integer, but " + key + " is " + end.scalar_text() + ", beyond 2^53",
          "give values: [...], or a smaller range");
    return false;
  }
  return true;
}

void SpaceReader::between(const Node& block, const std::string& path, const std::string& kind, Dimension& dimension) {
  const Node &min = *block.find("min"), &max = *block.find("max");
  dimension.min = min.as_double();
  dimension.max = max.as_double();
  dimension.kind = kind.ends_with("int") ? Dimension::Kind::kInteger : Dimension::Kind::kReal;
  if (dimension.kind == Dimension::Kind::kInteger && !is_exact(block, path)) return;
  if (!(dimension.min < dimension.max) || !std::isfinite(dimension.max - dimension.min)) {
    return error(min.location(), path + " has min " + min.scalar_text() + " and max " + max.scalar_text(),
                 "min must be less than max; put a single value into the recipe");
  }
  if (dimension.log && dimension.min <= 0) {
    return error(min.location(), path + " has min " + min.scalar_text() + ", which has no logarithm",
                 "use a min above 0, or a distribution without log_");
  }
  if (dimension.step > dimension.max - dimension.min) {
    return error(block.find("q")->location(),
                 path + " has steps of " + block.find("q")->scalar_text() + ", which leaves only min",
                 "use a smaller q");
  }
  if (dimension.kind != Dimension::Kind::kInteger) return;
  for (const char* key : {"min", "max", "q"}) {
    const Node* number = given(block, key);
    if (number != nullptr && !is_whole(*number)) {
      error(number->location(), path + " is an integer, but " + key + " is " + number->scalar_text(),
            dimension.log ? "distribution: log_uniform" : "distribution: uniform");
    }
  }
}

/// Whether a parameter that was not read yet sets the path.
bool SpaceReader::is_chosen_later(const std::string& path) const {
  const auto& all = sweep_.find("parameters")->entries();
  return std::any_of(all.begin(), all.end(), [&](const Node::Entry& entry) {
    const bool read = std::any_of(parts_.begin(), parts_.end(),
                                  [&](const SpacePart& part) { return part.paths.front() == entry.key; });
    return !read && is_inside(path, entry.key);
  });
}

/// A condition sees the parameters that stand before it, a constraint all of them.
std::optional<registry::Expression> SpaceReader::expression(const Node& text, bool all_parameters) {
  auto parsed = registry::parse_expression(text.as_string());
  if (!parsed) {
    error(text.location(), parsed.failure().message, parsed.failure().hint);
    return std::nullopt;
  }
  for (const std::string& path : parsed.value().paths()) {
    sections_.insert(path.substr(0, path.find_first_of(".[")));
    const auto sets = [&](const SpacePart& part) {
      return std::any_of(part.paths.begin(), part.paths.end(),
                         [&](const std::string& set) { return is_inside(path, set) || is_inside(set, path); });
    };
    if (!all_parameters && is_chosen_later(path)) {
      error(text.location(), "the condition reads " + path + ", which is defined later", "put " + path + " before it");
      continue;
    }
    if (recipe_.root.at_path(path) != nullptr || std::any_of(parts_.begin(), parts_.end(), sets)) continue;
    error(text.location(), "there is no " + path + " in this recipe, and no earlier parameter sets it",
          "use a path such as optimizer.type, or an earlier parameter");
  }
  return std::move(parsed).value();
}

std::vector<Constraint> SpaceReader::constraints() {
  std::vector<Constraint> list;
  for (const Node& text : sweep_.find("constraints")->items()) {
    if (auto constraint = expression(text, true)) list.push_back({*std::move(constraint), text});
  }
  return list;
}

ConstraintContext SpaceReader::context() const {
  std::vector<Node> set;
  for (const SpacePart& part : parts_) {
    for (const std::vector<Node>& choice : part.choices) set.insert(set.end(), choice.begin(), choice.end());
  }
  return {recipe_.root, open_.root, sections_, set, open_.recipe_dir};
}

}  // namespace runner::sweep

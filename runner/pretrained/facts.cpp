#include "runner/pretrained/facts.h"

#include <algorithm>
#include <cmath>

namespace runner::pretrained {

using core::Node;

Facts::Facts(const Node& config) : type_(model_type_of_config(config)), config_(config) {}

std::string Facts::field(std::string_view role) const {
  const Node* said = type_.roles.at_path(std::string(role));
  if (said != nullptr && said->is_sequence() && !said->items().empty()) said = &said->items().front();
  if (said == nullptr || !said->is_string()) return "";
  return type_.field(said->as_string()) != nullptr ? said->as_string() : "";
}

const Node* Facts::find(std::string_view role) const {
  const auto value_of = [this](const Node& said) -> const Node* {
    const bool names_field = said.is_string() && type_.field(said.as_string()) != nullptr;
    const Node* value = names_field ? config_.find(said.as_string()) : &said;
    return value != nullptr && !value->is_null() ? value : nullptr;
  };
  const Node* said = type_.roles.at_path(std::string(role));
  if (said == nullptr) return nullptr;
  if (!said->is_sequence()) return value_of(*said);
  for (const Node& one : said->items()) {
    if (const Node* value = value_of(one)) return value;
  }
  return nullptr;
}

std::int64_t Facts::integer(std::string_view role) const { return find(role)->as_integer(); }

std::int64_t Facts::integer(std::string_view role, std::int64_t otherwise) const {
  const Node* value = find(role);
  return value != nullptr ? value->as_integer() : otherwise;
}

double Facts::number(std::string_view role, double otherwise) const {
  const Node* value = find(role);
  return value != nullptr ? value->as_double() : otherwise;
}

bool Facts::flag(std::string_view role, bool otherwise) const {
  const Node* value = find(role);
  return value != nullptr ? value->as_bool() : otherwise;
}

std::string Facts::text(std::string_view role) const {
  const Node* value = find(role);
  return value != nullptr ? value->as_string() : "";
}

std::string Facts::meaning(std::string_view role, const std::string& word) const {
  const Node* names = type_.roles.find(role);
  const Node* found = names != nullptr ? names->find(word) : nullptr;
  return found != nullptr ? found->as_string() : word;
}

bool Facts::gated() const {
  const std::string prefix = text("gated_prefix");
  return flag("gated") || (!prefix.empty() && text("activation").starts_with(prefix));
}

std::string Facts::activation(std::string_view role) const {
  const std::string name = text(role), known = meaning("activation_names", name), prefix = text("gated_prefix");
  return known == name && !prefix.empty() && name.starts_with(prefix) ? name.substr(prefix.size()) : known;
}

std::int64_t Facts::labels() const {
  constexpr std::int64_t kUsual = 2;
  const std::int64_t stated = stated_labels();
  return stated > 0 ? stated : kUsual;
}

std::int64_t Facts::stated_labels() const {
  if (const Node* names = config_.find("id2label"); names != nullptr && names->is_mapping()) {
    return static_cast<std::int64_t>(names->entries().size());
  }
  const Node* count = config_.find("num_labels");
  return count != nullptr && count->is_integer() ? count->as_integer() : 0;
}

std::int64_t Facts::longest_text(std::int64_t positions) const {
  if (!flag("positions_after_padding")) return positions;
  const std::int64_t padding = integer("padding", -1);
  return positions - (padding < 0 ? padding + integer("vocabulary") : padding) - 1;
}

std::int64_t Facts::head() const { return integer("head", integer("width") / integer("heads")); }

double Facts::scale_of_scores() const {
  if (!field("scaled_scores").empty() && !flag("scaled_scores")) return 1.0;
  return number("score_scale", 1.0 / std::sqrt(number("score_size", static_cast<double>(head()))));
}

std::vector<bool> Facts::mixtures() const {
  if (!has("experts")) return {};
  const std::int64_t every = integer("experts.every", 1);
  std::vector<bool> all;
  for (std::int64_t i = 0; i < integer("layers"); ++i) all.push_back((i + 1) % every == 0);
  if (const Node* plain = find("experts.except")) {
    for (const Node& layer : plain->items()) all[static_cast<std::size_t>(layer.as_integer())] = false;
  }
  return std::find(all.begin(), all.end(), true) != all.end() ? all : std::vector<bool>();
}

std::vector<bool> Facts::rotated() const {
  const auto layers = static_cast<std::size_t>(integer("layers"));
  std::vector<bool> all(layers, true);
  if (const Node* list = find("rotated.list")) {
    for (std::size_t i = 0; i < layers; ++i) all[i] = list->items()[i].as_integer() != 0;
  } else if (const Node* every = find("rotated.except_every")) {
    const auto interval = static_cast<std::size_t>(every->as_integer());
    for (std::size_t i = 0; i < layers; ++i) all[i] = (i + 1) % interval != 0;
  }
  return std::all_of(all.begin(), all.end(), [](bool one) { return one; }) ? std::vector<bool>() : all;
}

std::vector<std::int64_t> Facts::windows() const {
  const Node* window = find("window.size");
  const Node* types = find("window.types");
  const bool decided = types != nullptr && flag("window.types_decide");  // whatever the other field says
  if (window == nullptr || (!decided && !field("window.if").empty() && !flag("window.if"))) return {};
  const auto layers = static_cast<std::size_t>(integer("layers"));
  // Both ways it is of the position and what lies on either side.
  std::vector<std::int64_t> windows(layers, flag("both_ways") ? window->as_integer() / 2 : window->as_integer());
  const auto widen = [&](const auto& is_wide) {
    for (std::size_t i = 0; i < layers; ++i) {
      if (is_wide(i)) windows[i] = 0;
    }
  };
  if (types != nullptr) {
    widen([&](std::size_t i) { return types->items()[i].as_string() != kSlidingAttention; });
  } else if (const Node* first = find("window.from")) {
    widen([&](std::size_t i) { return static_cast<std::int64_t>(i) < first->as_integer(); });
  } else if (const Node* every = find("window.except_every")) {
    widen([&](std::size_t i) { return (static_cast<std::int64_t>(i) + 1) % every->as_integer() == 0; });
  } else if (const Node* whole = find("window.whole_every")) {
    widen([&](std::size_t i) { return static_cast<std::int64_t>(i) % whole->as_integer() == 0; });
  } else if (flag("window.unless_rotated")) {
    const std::vector<bool> turns = rotated();
    widen([&](std::size_t i) { return turns.empty() || turns[i]; });
  }
  return windows;
}

std::vector<std::int64_t> rows_of_parts(const WeightRule& rule, std::int64_t rows, const Facts& facts) {
  if (rule.from.size() == 1) return {rows};
  if (rule.from.size() == 2) return {rows / 2, rows / 2};
  const std::int64_t heads = facts.integer("heads"), groups = facts.integer("kv_heads", heads);
  const std::int64_t head = rows / (heads + 2 * groups);
  return {heads * head, groups * head, groups * head};
}

}  // namespace runner::pretrained

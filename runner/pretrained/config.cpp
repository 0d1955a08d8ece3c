#include "runner/pretrained/config.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "runner/core/language/name_map.h"
#include "runner/core/platform/files.h"
#include "runner/core/text/suggest.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
#include "runner/pretrained/expert_fields.h"
#include "runner/pretrained/facts.h"
#include "runner/pretrained/model_type.h"
#include "runner/pretrained/packed/quantization_config.h"
#include "runner/recipe/read.h"

namespace runner::pretrained {
namespace {

namespace fs = std::filesystem;

using core::Diagnostics;
using core::Node;

constexpr std::int64_t kConfigBytesMax = 2 << 20;
constexpr std::int64_t kLayersMax = 10'000;
constexpr double kIntegerMax = 2147483647;
constexpr double kNumberMax = 1e30;
constexpr double kUsualBase = 10000.0;

/// What a rotary scaling needs beside `rope_type` and `rope_theta`, and what it may have.
struct RopeType {
  const char* name;
  std::vector<const char*> needed, allowed;
};

const std::vector<RopeType>& rope_types() {
  static const auto* const all = new std::vector<RopeType>{
      {"default", {}, {}},
      {"linear", {"factor"}, {}},
      {"dynamic", {"factor"}, {"original_max_position_embeddings"}},
      {"yarn",
       {"factor"},
       {"original_max_position_embeddings", "attention_factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim",
        "truncate"}},
      {"longrope", {"short_factor", "long_factor"}, {"factor", "original_max_position_embeddings", "attention_factor"}},
      {"llama3", {"factor", "low_freq_factor", "high_freq_factor"}, {"original_max_position_embeddings"}}};
  return *all;
}

bool is_of(const Node& value, const std::string& type) {
  if (type == "null") return value.is_null();
  if (type == "integer") return value.is_integer();
  if (type == "number") return value.is_number();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_bool();
  if (type == "object") return value.is_mapping();
  return (type == "array" || type == "list") && value.is_sequence();
}

std::string shown(const Node& value) {
  if (value.is_mapping()) return "an object";
  if (value.is_sequence()) return "a list";
  return value.is_null() ? "null" : value.is_string() ? core::quote(value.as_string()) : value.scalar_text();
}

std::string number_text(double number) {
  const Node node = number == static_cast<double>(static_cast<std::int64_t>(number))
                        ? Node::integer(static_cast<std::int64_t>(number))
                        : Node::floating(number);
  return core::to_json(node, -1);
}

class Checker {
 public:
  Checker(const Node& config, Diagnostics& diagnostics) : config_(config), diagnostics_(diagnostics) {}

  std::optional<Node> check() {
    if (!config_.is_mapping()) {
      diagnostics_.error(config_.location(), "a configuration is an object, and this is " + shown(config_));
      return std::nullopt;
    }
    if (!find_type()) return std::nullopt;
    const int before = diagnostics_.error_count();
    found_ = Node::mapping(config_.location());
    found_.set("model_type", Node::string(type_->name, config_.find("model_type")->location()));
    for (const Node::Entry& entry : config_.entries()) take(entry);
    gather_rope();
    if (diagnostics_.error_count() == before) complete();
    if (diagnostics_.error_count() == before) check_together();
    if (diagnostics_.error_count() > before) return std::nullopt;
    return std::move(found_);
  }

 private:
  bool find_type() {
    const Node* written = config_.find("model_type");
    const std::string list = core::joined_first(model_types(), model_types().size());
    if (written == nullptr || !written->is_string()) {
      diagnostics_.error(written != nullptr ? written->location() : config_.location(),
                         written != nullptr ? "model_type is " + shown(*written) + ", not a name"
                                            : std::string("the configuration has no model_type"),
                         "roux reads " + list);
      return false;
    }
    type_ = find_model_type(written->as_string());
    if (type_ == nullptr) {
      const std::string why = why_refused(written->as_string());
      diagnostics_.error(written->location(),
                         "model_type is " + core::quote(written->as_string()) + ", which roux does not read" +
                             (why.empty() ? "" : ": " + why),
                         "it reads " + list);
    }
    return type_ != nullptr;
  }

  void error(const Node& at, const std::string& message, const std::string& hint = "") {
    diagnostics_.error(at.location(), message, hint);
  }

  void take(const Node::Entry& entry) {
    const core::Location& location = entry.key_location;
    const Node& value = entry.value;
    if (entry.key == "model_type") return;
    if (entry.key == "architectures") return take_classes(value, location);
    if (entry.key == kQuantizationConfig) {
      if (!value.is_null() && quantization_of(value, diagnostics_)) found_.set(entry.key, value, location);
      return;
    }
    const Field* field = type_->field(entry.key);
    if (field == nullptr) field = type_->field_also_called(entry.key);
    const std::string& name = field != nullptr ? field->name : entry.key;
    if (name != entry.key) {
      if (value.is_null()) return;
      if (const Node* other = get(name); other != nullptr && !other->same_value(value)) {
        return error(value,
                     entry.key + " is " + shown(value) + " and " + name + " is " + shown(*other) +
                         ", which are one field in Transformers",
                     "remove one of them");
      }
    }
    if (field == nullptr) {
      const bool says_nothing =
          std::any_of(type_->metadata.begin(), type_->metadata.end(),
                      [&](const std::string& pattern) { return core::matches_wildcard(pattern, name); });
      if (says_nothing || value.is_null()) return;  // null asks for nothing
      std::vector<std::string> names;
      for (const Field& known : type_->fields) names.push_back(known.name);
      const std::string near = core::closest(name, names);
      diagnostics_.error(location,
                         core::quote(name) + " is not a field of " + type_->name +
                             " in Transformers 5.24: what it does to "
                             "the model is unknown",
                         near.empty() ? "remove it if it does nothing" : "did you mean \"" + near + "\"?");
      return;
    }
    switch (field->use) {
      case Field::Use::kNone: found_.set(name, value, location); return;
      case Field::Use::kOnly: return check_only(*field, value);
      case Field::Use::kRead: break;
    }
    if (fits(*field, value)) found_.set(name, value, location);
  }

  /// Kept where they say of the model what its type alone does not: another head than the usual one.
  void take_classes(const Node& classes, const core::Location& location) {
    if (!classes.is_sequence()) return;
    for (const Node& one : classes.items()) {
      const std::string head = one.is_string() ? type_->head_of_class(one.as_string()) : "";
      if (head.empty()) continue;
      if (head != type_->head) found_.set("architectures", Node::sequence({one}), location);
      return;
    }
  }

  void check_only(const Field& field, const Node& value) {
    if (value.is_null() || value.same_value(field.value)) return;
    if (value.is_number() && field.value.is_number() && value.as_double() == field.value.as_double()) return;
    error(value, field.name + " is " + shown(value) + ", and roux computes such a " + type_->name + " with " +
                     core::to_json(field.value, -1) + " only");
  }

  bool fits(const Field& field, const Node& value) {
    const bool of_type =
        field.types.empty() || std::any_of(field.types.begin(), field.types.end(),
                                           [&](const std::string& type) { return is_of(value, type); });
    if (!of_type) {
      error(value, field.name + " is " + shown(value) + ", but has to be " + core::joined_first(field.types, 4));
      return false;
    }
    if (!value.is_number()) return true;
    const double number = value.as_double();
    const double most = value.is_integer() ? kIntegerMax : kNumberMax;
    std::string bound;
    if (field.minimum && number < *field.minimum) bound = "at least " + number_text(*field.minimum);
    if (field.exclusive_minimum && number <= *field.exclusive_minimum) {
      bound = "more than " + number_text(*field.exclusive_minimum);
    }
    if (field.maximum && number > *field.maximum) bound = "at most " + number_text(*field.maximum);
    if (field.exclusive_maximum && number >= *field.exclusive_maximum) {
      bound = "less than " + number_text(*field.exclusive_maximum);
    }
    if (bound.empty() && number > most) bound = "at most " + number_text(most);
    if (bound.empty() && !(number >= -most)) bound = "at least " + number_text(-most);
    if (bound.empty()) return true;
    error(value, field.name + " is " + shown(value) + ", but has to be " + bound);
    return false;
  }

  const Node* get(std::string_view name) const {
    const Node* value = found_.find(name);
    return value != nullptr && !value->is_null() ? value : nullptr;
  }
  std::int64_t integer(std::string_view name) const { return get(name)->as_integer(); }

  /// The names of version 5, and every field that is read.
  void complete() {
    for (const Field& field : type_->fields) {
      if (field.use != Field::Use::kRead || field.optional || found_.find(field.name) != nullptr) continue;
      if (field.name.starts_with("rope_")) continue;  // all of them are in rope_parameters
      if (field.name == "torch_dtype" || field.name == "dtype") continue;
      Node value = field.value;
      value.set_location(found_.location());
      value.set_history({{"default of Transformers' " + type_->name, core::Origin::kDefault}});
      found_.set(field.name, std::move(value));
    }
  }

  /// `rope_theta` beside `rope_scaling`, as version 4 writes them, become `rope_parameters`. A `rope_scaling` that was
  /// added to what version 5 wrote takes the place of its `rope_parameters`, their `rope_theta` included.
  void gather_rope() {
    const Facts facts(*type_, found_);
    if (facts.field("rotary").empty()) return;
    const std::string old_theta = old_name(facts, "full", "rope_theta"),
                      old_local_theta = old_name(facts, "sliding", "rope_local_base_freq");
    const Node *parameters = get("rope_parameters"), *scaling = get("rope_scaling"), *theta = get(old_theta);
    if (scaling != nullptr && scaling->entries().empty()) scaling = nullptr;
    const double base = facts.number("rotary_default.full", kUsualBase);
    Node rope;
    if (!facts.has("rotary_default.sliding")) {
      rope = rope_of(scaling != nullptr ? scaling : parameters, theta, base);
    } else {
      const Node* full = parameters != nullptr ? parameters->find(kFullAttention) : nullptr;
      const Node* sliding = parameters != nullptr ? parameters->find(kSlidingAttention) : nullptr;
      if (parameters != nullptr && full == nullptr && sliding == nullptr) {
        return error(*parameters, std::string("rope_parameters has neither ") + kFullAttention + " nor " +
                                      kSlidingAttention + ", as those of " + type_->name + " have");
      }
      rope = Node::mapping(found_.location());
      Node joined;  // what `rope_scaling` says goes before what it was added to
      if (full != nullptr && full->is_mapping() && scaling != nullptr) {
        joined = *full;
        for (const Node::Entry& entry : scaling->entries()) joined.set(entry.key, entry.value, entry.key_location);
        full = &joined;
      } else if (scaling != nullptr) {
        full = scaling;
      }
      rope.set(kFullAttention, rope_of(full, theta, base));
      rope.set(kSlidingAttention,
               rope_of(sliding, get(old_local_theta), facts.number("rotary_default.sliding", kUsualBase)));
    }
    for (const std::string& old : {std::string("rope_scaling"), old_theta, old_local_theta}) found_.erase(old);
    found_.set("rope_parameters", std::move(rope));
  }

  /// The field of version 4 for the base of such layers.
  static std::string old_name(const Facts& facts, const std::string& layers, const char* usual) {
    const std::string name = facts.field("rotary_bases." + layers);
    return name.empty() ? usual : name;
  }

  Node rope_of(const Node* from, const Node* theta, double usual_base) {
    const Facts facts(*type_, found_);
    if (from != nullptr && from->is_null()) from = nullptr;
    Node rope = Node::mapping(from != nullptr ? from->location() : found_.location());
    if (from != nullptr && !from->is_mapping()) {
      error(*from, "a rotary scaling is " + shown(*from) + ", but has to be object");
      return rope;
    }
    const Node* type = from != nullptr ? from->find("rope_type") : nullptr;
    if (from != nullptr && type == nullptr) type = from->find("type");
    if (type != nullptr && !type->is_string()) {
      error(*type, "rope_type is " + shown(*type) + ", not a name");
      return rope;
    }
    rope.set("rope_type", type == nullptr
                              ? Node::string("default", rope.location())
                              : Node::string(facts.meaning("rotary_names", type->as_string()), type->location()));
    const Node* base = from != nullptr ? from->find("rope_theta") : nullptr;
    if (base == nullptr) base = theta;
    rope.set("rope_theta", base != nullptr ? *base : Node::floating(usual_base, rope.location()));
    if (from != nullptr) {
      for (const Node::Entry& entry : from->entries()) {
        if (entry.key == "rope_type" || entry.key == "type" || entry.key == "rope_theta" || entry.value.is_null())
          continue;
        rope.set(entry.key, entry.value, entry.key_location);
      }
    }
    if (const Node* part = facts.find("rotary_part");
        part != nullptr && rope.find("partial_rotary_factor") == nullptr) {
      rope.set("partial_rotary_factor", *part);
    }
    // The type's own field goes before that of the scaling, with its default, too.
    if (const std::string original = facts.field("rotary_original"); !original.empty() && is_long(rope)) {
      const Node* written = facts.find("rotary_original");
      rope.set("original_max_position_embeddings", written != nullptr ? *written : type_->field(original)->value);
    }
    check_rope(rope);
    return rope;
  }

  static bool is_long(const Node& rope) { return rope.find("rope_type")->as_string() == "longrope"; }

  void check_rope(Node& rope) {
    const std::string name = rope.find("rope_type")->as_string();
    const auto& all = rope_types();
    const auto type = std::find_if(all.begin(), all.end(), [&](const RopeType& t) { return name == t.name; });
    if (type == all.end()) {
      return error(*rope.find("rope_type"), "rope_type is " + core::quote(name) + ", which roux does not compute",
                   "it computes default, linear, dynamic, yarn, longrope and llama3");
    }
    if (const Node* only = type_->roles.find("rotary_types")) {
      const bool is_one = std::any_of(only->items().begin(), only->items().end(),
                                      [&name](const Node& one) { return one.as_string() == name; });
      if (!is_one) {
        return error(*rope.find("rope_type"),
                     "rope_type is " + core::quote(name) + ", which Transformers' " + type_->name + " does not have");
      }
    }
    for (const char* needed : type->needed) {
      if (rope.find(needed) == nullptr) {
        error(rope, std::string("rope_type ") + core::quote(name) + " needs " + needed);
      }
    }
    std::vector<std::string> extra;
    for (const Node::Entry& entry : rope.entries()) {
      const auto names_it = [&](const char* key) { return entry.key == key; };
      if (entry.key == "rope_type") continue;
      if (entry.key == "partial_rotary_factor") {
        const bool turns_part = type_->roles.find("rotary_part") != nullptr;
        const double part = entry.value.is_number() ? entry.value.as_double() : 0;
        if (turns_part ? !(part > 0 && part <= 1) : part != 1.0) {
          error(entry.value,
                "partial_rotary_factor is " + shown(entry.value) +
                    (turns_part ? ", but has to be more than 0 and at most 1" : ", and roux turns all features (1.0)"));
        }
        if (!turns_part || part == 1.0) extra.push_back(entry.key);
        continue;
      }
      const bool known = entry.key == "rope_theta" || std::any_of(type->needed.begin(), type->needed.end(), names_it) ||
                         std::any_of(type->allowed.begin(), type->allowed.end(), names_it);
      if (!known) {
        // Transformers warns of keys that another type of scaling would read, and leaves them.
        extra.push_back(entry.key);
        continue;
      }
      check_rope_value(entry);
    }
    for (const std::string& key : extra) rope.erase(key);
  }

  void check_rope_value(const Node::Entry& entry) {
    const auto& [key, location, value] = entry;
    if (key == "truncate") {
      if (!value.is_bool()) error(value, "truncate is " + shown(value) + ", but has to be boolean");
      return;
    }
    if (key == "short_factor" || key == "long_factor") {
      const bool is_list =
          value.is_sequence() && std::all_of(value.items().begin(), value.items().end(), [](const Node& one) {
            return one.is_number() && one.as_double() > 0 && one.as_double() <= kNumberMax;
          });
      if (!is_list) error(value, key + " is " + shown(value) + ", but has to be a list of numbers above 0");
      return;
    }
    const bool whole = key == "original_max_position_embeddings";
    if (whole ? !value.is_integer() : !value.is_number()) {
      return error(value, key + " is " + shown(value) + ", but has to be " + (whole ? "integer" : "number"));
    }
    const double number = value.as_double(), least = key == "factor" ? 1.0 : 0.0;
    if (key == "factor" ? number < least : number <= least) {
      return error(value,
                   key + " is " + shown(value) + ", but has to be " + (key == "factor" ? "at least 1" : "more than 0"));
    }
    if (!(number <= (whole ? kIntegerMax : kNumberMax))) {
      error(value,
            key + " is " + shown(value) + ", but has to be at most " + number_text(whole ? kIntegerMax : kNumberMax));
    }
  }

  /// Rules between fields.
  void check_together() {
    const Facts facts(*type_, found_);
    const auto said = [&](const char* role) { return facts.field(role) + " is " + shown(*facts.find(role)); };
    const std::int64_t layers = facts.integer("layers"), heads = facts.integer("heads");
    if (layers > kLayersMax) {
      error(*facts.find("layers"), said("layers") + ", but has to be at most " + std::to_string(kLayersMax));
    }
    const Node* head = facts.find("head");
    if (head == nullptr && facts.integer("width") % heads != 0) {
      error(*facts.find("heads"),
            said("heads") + ", which does not divide " + facts.field("width") + " " + shown(*facts.find("width")));
    }
    if (facts.has("rotary")) check_turned(facts);
    const Node* shared = facts.find("kv_heads");
    if (shared != nullptr && heads % shared->as_integer() != 0) {
      error(*shared,
            said("kv_heads") + ", which does not divide " + facts.field("heads") + " " + shown(*facts.find("heads")));
    }
    check_layer_types(facts);
    check_rotated(facts);
    check_experts(facts, diagnostics_);
  }

  /// What is turned of each head are pairs of features, and a `longrope` has a factor for each of them.
  void check_turned(const Facts& facts) {
    const std::int64_t of_head = facts.head();
    const Node* at = facts.has("head") ? facts.find("head") : facts.find("heads");
    const Node& parameters = *facts.find("rotary");
    const Node* full = parameters.find(kFullAttention);
    for (const Node* rope : {full != nullptr ? full : &parameters, parameters.find(kSlidingAttention)}) {
      if (rope == nullptr) continue;
      const Node* part = rope->find("partial_rotary_factor");
      const auto turned =
          static_cast<std::int64_t>(static_cast<double>(of_head) * (part != nullptr ? part->as_double() : 1.0));
      if (turned % 2 != 0 || turned == 0) {
        error(*at, "rotary positions turn pairs of features, but a head has " + std::to_string(turned));
        return;
      }
      for (const char* key : {"short_factor", "long_factor"}) {
        const Node* list = rope->find(key);
        if (list == nullptr || static_cast<std::int64_t>(list->items().size()) == turned / 2) continue;
        error(*list, std::string(key) + " has " + std::to_string(list->items().size()) + " factors, but a head turns " +
                         std::to_string(turned / 2) + " pairs of features");
      }
    }
  }

  void check_layer_types(const Facts& facts) {
    const std::string name = facts.field("window.types");
    const Node* types = name.empty() ? nullptr : get(name);
    if (types == nullptr) return;
    const std::int64_t layers = facts.integer("layers");
    if (static_cast<std::int64_t>(types->items().size()) != layers) {
      error(*types, name + " names " + std::to_string(types->items().size()) + " layers, but " + facts.field("layers") +
                        " is " + std::to_string(layers));
    }
    for (const Node& type : types->items()) {
      if (type.is_string() && (type.as_string() == kFullAttention || type.as_string() == kSlidingAttention)) continue;
      error(type, "a layer type is " + shown(type) + ", which roux does not compute",
            std::string("it computes ") + kFullAttention + " and " + kSlidingAttention);
    }
    const bool slides = std::any_of(types->items().begin(), types->items().end(), [](const Node& type) {
      return type.is_string() && type.as_string() == kSlidingAttention;
    });
    if (!slides) return;
    if (!facts.has("window.size")) {
      error(*types, name + " has " + kSlidingAttention + ", but " + facts.field("window.size") + " is null");
    } else if (!facts.field("window.if").empty() && !facts.flag("window.if") && !facts.flag("window.types_decide")) {
      error(*types, name + " has " + kSlidingAttention + ", but " + facts.field("window.if") + " is false",
            "set it to true; Transformers does not compute this either");
    }
  }

  void check_rotated(const Facts& facts) {
    const Node* list = facts.find("rotated.list");
    if (list == nullptr) return;
    const std::string name = facts.field("rotated.list");
    if (static_cast<std::int64_t>(list->items().size()) != facts.integer("layers")) {
      error(*list, name + " names " + std::to_string(list->items().size()) + " layers, but " + facts.field("layers") +
                       " is " + std::to_string(facts.integer("layers")));
    }
    for (const Node& one : list->items()) {
      if (one.is_integer() && (one.as_integer() == 0 || one.as_integer() == 1)) continue;
      error(one, "a layer of " + name + " is " + shown(one) + ", but has to be 0 or 1");
    }
  }

  const Node& config_;
  Diagnostics& diagnostics_;
  const ModelType* type_ = nullptr;
  Node found_;
};

/// A file of JSON with its locations.
std::optional<Node> read_located(const std::string& path, Diagnostics& diagnostics) {
  auto source = std::make_shared<core::Source>();
  source->name = path;
  const core::Result<std::string> text = core::read_file(path, kConfigBytesMax);
  if (!text) {
    diagnostics.error({source, 0, 0}, text.failure().message, text.failure().hint);
    return std::nullopt;
  }
  source->text = text.value();
  return recipe::read_json(source, {.file_bytes_max = kConfigBytesMax}, diagnostics);
}

}  // namespace

std::string config_of_folder(const std::string& path) {
  std::error_code failed;
  std::string file = (fs::path(path) / kConfigFile).string();
  return fs::is_directory(path, failed) && fs::is_regular_file(file, failed) ? file : "";
}

std::optional<Node> read_config(const std::string& path, Diagnostics& diagnostics) {
  const std::optional<Node> config = read_located(path, diagnostics);
  return config && !diagnostics.has_errors() ? check_config(*config, diagnostics) : std::nullopt;
}

std::optional<Node> read_quantization(const std::string& path, Diagnostics& diagnostics) {
  const std::optional<Node> config = read_located(path, diagnostics);
  const Node* field = config && config->is_mapping() ? config->find(kQuantizationConfig) : nullptr;
  if (field == nullptr || field->is_null()) return std::nullopt;
  return quantization_of(*field, diagnostics);
}

std::optional<Node> check_config(const Node& config, Diagnostics& diagnostics) {
  return Checker(config, diagnostics).check();
}

}  // namespace runner::pretrained

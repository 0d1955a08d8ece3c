#include "runner/registry/fragment.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

#include "runner/core/path.h"
#include "runner/core/text/suggest.h"
#include "runner/core/text/text.h"
#include "runner/core/units.h"
#include "runner/recipe/read.h"
#include "runner/registry/expression.h"
#include "runner/registry/pattern.h"

namespace runner::registry {
namespace {

using core::Node;
using Type = Property::Type;

const std::vector<std::string> kFragmentKeywords = {
    "title",   "description", "x-source",        "type",     "examples",   "properties", "x-short-form", "x-checks",
    "x-holds", "x-resync",    "x-configured-by", "x-update", "x-measures", "x-records",  "x-target",     "x-by-class"};
const std::vector<std::string> kPropertyKeywords = {"description",
                                                    "x-short-form",
                                                    "type",
                                                    "properties",
                                                    "items",
                                                    "additionalProperties",
                                                    "minimum",
                                                    "maximum",
                                                    "enum",
                                                    "exclusiveMinimum",
                                                    "exclusiveMaximum",
                                                    "pattern",
                                                    "x-pattern-hint",
                                                    "minItems",
                                                    "default",
                                                    "maxItems",
                                                    "minLength",
                                                    "x-default-from",
                                                    "x-unit",
                                                    "x-type",
                                                    "x-kind",
                                                    "x-auto",
                                                    "x-count",
                                                    "x-single",
                                                    "x-words",
                                                    "x-aliases",
                                                    "x-exclusive",
                                                    "x-resume",
                                                    "x-hash",
                                                    "x-hash-unset",
                                                    "x-infinity",
                                                    "examples"};
const std::vector<std::string> kUpdates = {"elementwise", "blocks", "whole-tensor", "in-backward"};
const std::vector<std::string> kSignKeywords = {"variable", "pattern", "file", "holds"};
const std::vector<std::string> kCheckKeywords = {"rule", "at", "message", "hint"};

/// A key must do as a C++ member and as part of a dotted path.
bool is_key(const std::string& text) {
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0]))) return false;
  return std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return std::islower(c) || std::isdigit(c) || c == '_'; });
}

std::string shown(const Node& node) {
  if (node.is_mapping()) return "a mapping";
  if (node.is_sequence()) return "a list";
  return node.is_string() ? core::in_quotes(node.as_string()) : node.scalar_text();
}

/// Why `value` cannot stand for `property`; "" when it can. The schema's own defaults only: what a recipe holds is
/// judged by registry/validate.h, with better words.
std::string value_error(const Property& property, const Node& value) {
  const auto in_range = [&](double number) -> std::string {
    const bool fits = !(property.minimum && number < *property.minimum) &&
                      !(property.maximum && number > *property.maximum) &&
                      !(property.exclusive_minimum && number <= *property.exclusive_minimum) &&
                      !(property.exclusive_maximum && number >= *property.exclusive_maximum);
    return fits ? "" : value.scalar_text() + " is outside of its own range";
  };
  const auto wanted = [&](const char* what) { return std::string("it must be ") + what + ", got " + shown(value); };
  switch (property.type) {
    case Type::kBoolean: return value.is_bool() ? "" : wanted("true or false");
    case Type::kInteger: return value.is_integer() ? in_range(value.as_double()) : wanted("an integer");
    case Type::kNumber: return value.is_number() ? in_range(value.as_double()) : wanted("a number");
    case Type::kString:
    case Type::kPath:
    case Type::kSecret: {
      if (!value.is_string()) return wanted("text");
      const auto& names = property.enum_values;
      if (names.empty() || std::find(names.begin(), names.end(), value.as_string()) != names.end()) return "";
      return wanted(("one of " + core::joined(names)).c_str());
    }
    case Type::kInterval: return core::parse_interval(value.scalar_text()).ok() ? "" : wanted("an interval");
    case Type::kDuration: return core::parse_duration_s(value.scalar_text()).ok() ? "" : wanted("a duration");
    case Type::kBytes: return core::parse_bytes(value.scalar_text()).ok() ? "" : wanted("a size");
    case Type::kArray: {
      if (!value.is_sequence()) return wanted("a list");
      const int count = static_cast<int>(value.items().size());
      if ((property.min_items && count < *property.min_items) || (property.max_items && count > *property.max_items))
        return "it has " + std::to_string(count) + " items, which is outside of its own range";
      for (const Node& item : value.items()) {
        const std::string why = value_error(*property.element, item);
        if (!why.empty()) return "in an item, " + why;
      }
      return "";
    }
    case Type::kObject:
    case Type::kMap:
    case Type::kSection: return value.is_mapping() ? "" : wanted("a mapping");
    case Type::kComponent: {
      const Node* type = value.find("type");
      return value.is_string() || (type && type->is_string()) ? "" : wanted("a name or a mapping with type");
    }
    case Type::kAny: return "";
  }
  return "";
}

/// Reads one fragment; every error names the line, so that an author can fix all at once.
class Reader {
 public:
  Reader(Fragment& fragment, core::Diagnostics& diagnostics) : fragment_(fragment), diagnostics_(diagnostics) {}

  void read(const Node& root) {
    if (!root.is_mapping()) return error(root, "a schema fragment must be a JSON object, got " + shown(root));
    known_keywords(root, kFragmentKeywords, "a fragment");
    fragment_.title = required_text(root, "title");
    fragment_.description = required_text(root, "description");
    fragment_.source = text(root, "x-source");
    fragment_.short_form = text(root, "x-short-form");
    read_update(root);
    fragment_.measures = texts(root, "x-measures");
    if (!fragment_.measures.empty() && fragment_.kind != "loss" && fragment_.kind != "metric")
      error(*root.find("x-measures"), "x-measures applies to losses and metrics only");
    fragment_.records = text(root, "x-records");
    const bool is_known =
        fragment_.records == "labelled" || fragment_.records == "pairs" || fragment_.records == "scores";
    if (!fragment_.records.empty() && (fragment_.kind != "loss" || !is_known))
      error(*root.find("x-records"), "x-records applies to losses only, and is \"labelled\", \"pairs\" or \"scores\"");
    fragment_.target = text(root, "x-target");
    const bool is_target = fragment_.target == "classes" || fragment_.target == "values" ||
                           (fragment_.target == "labels" && fragment_.kind == "loss") ||
                           (fragment_.target == "texts" && fragment_.kind == "metric");
    if (!fragment_.target.empty() && !is_target) {
      error(*root.find("x-target"),
            "x-target is \"classes\" or \"values\", or of a loss \"labels\", or of a metric \"texts\"");
    }
    read_by_class(root);
    if (const Node* type = root.find("type"); type && !(type->is_string() && type->as_string() == "object"))
      error(*type, "a fragment describes an object, got type " + shown(*type));
    fragment_.properties = read_properties(root);
    if (fragment_.kind != "section" && fragment_.find("type"))
      error(root, "the key type of a component is reserved for its name");
    if (!fragment_.short_form.empty() && !fragment_.find(fragment_.short_form))
      error(*root.find("x-short-form"),
            "x-short-form names " + core::in_quotes(fragment_.short_form) + ", which is not a property");
    read_holds(root);
    read_tool(root);
    read_checks(root);
    read_examples(root);
    check_siblings(fragment_.properties);
  }

 private:
  void error(const Node& at, std::string message, std::string hint = "") {
    diagnostics_.error(at.location(), std::move(message), std::move(hint));
  }

  void known_keywords(const Node& node, const std::vector<std::string>& known, const std::string& where) {
    for (const Node::Entry& entry : node.entries()) {
      if (std::find(known.begin(), known.end(), entry.key) != known.end()) continue;
      const std::string near = core::closest(entry.key, known);
      diagnostics_.error(
          entry.key_location, where + " has no keyword " + core::in_quotes(entry.key),
          near.empty() ? "known are " + core::joined(known) : "did you mean " + core::in_quotes(near) + "?");
    }
  }

  std::string text(const Node& node, const char* keyword) {
    const Node* value = node.find(keyword);
    if (!value) return "";
    if (value->is_string()) return value->as_string();
    error(*value, std::string(keyword) + " must be text, got " + shown(*value));
    return "";
  }

  void read_update(const Node& root) {
    const Node* update = root.find("x-update");
    if (update == nullptr) return;
    if (fragment_.kind != "optimizer") return error(*update, "x-update applies to optimizers only");
    const bool is_known =
        update->is_string() && std::find(kUpdates.begin(), kUpdates.end(), update->as_string()) != kUpdates.end();
    if (!is_known) return error(*update, "x-update is one of " + core::joined(kUpdates) + ", got " + shown(*update));
    fragment_.update = update->as_string();
  }

  void read_by_class(const Node& root) {
    const Node* by_class = root.find("x-by-class");
    if (by_class == nullptr) return;
    if (fragment_.kind != "metric" || !by_class->is_mapping() || by_class->entries().size() != 1 ||
        !by_class->entries().front().value.is_string())
      return error(*by_class, "x-by-class applies to metrics, and holds one key with a text");
    const Node::Entry& entry = by_class->entries().front();
    if (!root.find("properties") || !root.find("properties")->find(entry.key))
      return error(*by_class, "x-by-class names " + core::in_quotes(entry.key) + ", which is not a property");
    fragment_.by_class = {entry.key, entry.value.as_string()};
  }

  std::string required_text(const Node& node, const char* keyword) {
    if (!node.find(keyword)) error(node, std::string("the keyword ") + keyword + " is missing");
    return text(node, keyword);
  }

  std::optional<double> number(const Node& node, const char* keyword) {
    const Node* value = node.find(keyword);
    if (!value) return std::nullopt;
    if (value->is_number()) return value->as_double();
    error(*value, std::string(keyword) + " must be a number, got " + shown(*value));
    return std::nullopt;
  }

  std::optional<int> count(const Node& node, const char* keyword) {
    const Node* value = node.find(keyword);
    if (!value) return std::nullopt;
    if (value->is_integer() && value->as_integer() >= 0 && value->as_integer() < 1'000'000)
      return static_cast<int>(value->as_integer());
    error(*value, std::string(keyword) + " must be an integer of at least 0, got " + shown(*value));
    return std::nullopt;
  }

  std::vector<std::string> texts(const Node& node, const char* keyword) {
    std::vector<std::string> values;
    const Node* list = node.find(keyword);
    if (!list) return values;
    if (!list->is_sequence()) {
      error(*list, std::string(keyword) + " must be a list of texts, got " + shown(*list));
      return values;
    }
    for (const Node& item : list->items()) {
      if (!item.is_string()) {
        error(item, std::string(keyword) + " must be a list of texts, got " + shown(item) + " in it");
      } else if (std::find(values.begin(), values.end(), item.as_string()) != values.end()) {
        error(item, std::string(keyword) + " names " + core::in_quotes(item.as_string()) + " twice");
      } else {
        values.push_back(item.as_string());
      }
    }
    return values;
  }

  std::vector<Property> read_properties(const Node& node) {
    std::vector<Property> properties;
    const Node* mapping = node.find("properties");
    if (!mapping) return properties;
    if (!mapping->is_mapping()) {
      error(*mapping, "properties must be an object, got " + shown(*mapping));
      return properties;
    }
    for (const Node::Entry& entry : mapping->entries()) {
      if (!is_key(entry.key))
        diagnostics_.error(entry.key_location, core::in_quotes(entry.key) + " cannot be a key of a recipe",
                           "use lower-case letters, digits and underscores, with a letter first");
      Property property = read_property(entry.key, entry.value);
      property.location = entry.key_location;
      if (property.description.empty() && entry.value.is_mapping())
        diagnostics_.error(entry.key_location, "the key " + core::in_quotes(entry.key) + " has no description");
      properties.push_back(std::move(property));
    }
    return properties;
  }

  Property read_property(const std::string& name, const Node& node) {
    Property property;
    property.name = name;
    property.location = node.location();
    property.type = Type::kAny;
    if (!node.is_mapping()) {
      error(node, "the description of a value must be an object, got " + shown(node));
      return property;
    }
    known_keywords(node, kPropertyKeywords, "a property");
    property.type = read_type(node, property);
    property.description = text(node, "description");
    property.unit = text(node, "x-unit");
    property.default_from = text(node, "x-default-from");
    property.minimum = number(node, "minimum");
    property.maximum = number(node, "maximum");
    property.exclusive_minimum = number(node, "exclusiveMinimum");
    property.exclusive_maximum = number(node, "exclusiveMaximum");
    property.enum_values = texts(node, "enum");
    property.pattern = text(node, "pattern");
    property.pattern_hint = text(node, "x-pattern-hint");
    property.min_items = count(node, "minItems");
    property.max_items = count(node, "maxItems");
    property.min_length = count(node, "minLength");
    property.aliases = texts(node, "x-aliases");
    property.exclusive_with = texts(node, "x-exclusive");
    property.words = texts(node, "x-words");
    property.single = flag(node, "x-single");
    property.or_auto = flag(node, "x-auto");
    property.count_key = text(node, "x-count");
    property.short_form = text(node, "x-short-form");
    property.resume = read_resume(node);
    property.hashed = node.find("x-hash") == nullptr || flag(node, "x-hash");
    if (const Node* examples = node.find("examples"); examples && examples->is_sequence())
      property.examples = examples->items();
    property.takes_infinity = flag(node, "x-infinity");
    applies(node, property);
    read_default(node, property);
    read_hash_unset(node, property);
    return property;
  }

  bool flag(const Node& node, const char* keyword) {
    const Node* value = node.find(keyword);
    if (value == nullptr) return false;
    if (!value->is_bool()) error(*value, std::string(keyword) + " must be true or false, got " + shown(*value));
    return value->is_bool() && value->as_bool();
  }

  Property::Resume read_resume(const Node& node) {
    if (node.find("x-resume") == nullptr) return Property::Resume::kAsAbove;
    const std::string word = text(node, "x-resume");
    if (word == "harmless") return Property::Resume::kHarmless;
    if (word != "rule" && node.find("x-resume")->is_string())
      error(*node.find("x-resume"), "x-resume must be harmless or rule, got " + core::in_quotes(word),
            "a key without x-resume changes the results");
    return Property::Resume::kRule;
  }

  Type read_type(const Node& node, Property& property) {
    const std::string type = text(node, "type");
    const std::string special = text(node, "x-type");
    property.kind = text(node, "x-kind");
    if (!property.kind.empty()) {
      if (!special.empty() || (!type.empty() && type != "object"))
        error(node, "x-kind stands alone: the kind says what the value is");
      return property.kind == "section" ? Type::kSection : Type::kComponent;
    }
    if (!special.empty()) {
      static const std::pair<const char*, Type> kSpecial[] = {
          {"interval", Type::kInterval}, {"duration", Type::kDuration}, {"bytes", Type::kBytes},
          {"path", Type::kPath},         {"secret", Type::kSecret},     {"any", Type::kAny}};
      for (const auto& [word, value] : kSpecial)
        if (special == word) return value;
      error(*node.find("x-type"),
            "x-type must be one of interval, duration, bytes, path, secret, any, got " + core::in_quotes(special));
      return Type::kAny;
    }
    if (type == "boolean") return Type::kBoolean;
    if (type == "integer") return Type::kInteger;
    if (type == "number") return Type::kNumber;
    if (type == "string") return Type::kString;
    if (type == "array") return read_element(node, "items", property) ? Type::kArray : Type::kAny;
    if (type == "object") {
      if (node.find("properties")) {
        if (const Node* more = node.find("additionalProperties"))
          error(*more, "properties and additionalProperties are mutually exclusive",
                "an object is either closed or a map of one type");
        property.properties = read_properties(node);
        check_siblings(property.properties);
        check_short_form(node, property.properties);
        return Type::kObject;
      }
      return read_element(node, "additionalProperties", property) ? Type::kMap : Type::kAny;
    }
    if (type.empty()) {
      error(node, "the value has no type", "give type, x-type or x-kind");
    } else {
      error(*node.find("type"),
            "type must be one of boolean, integer, number, string, array, object, got " + core::in_quotes(type));
    }
    return Type::kAny;
  }

  void check_short_form(const Node& node, const std::vector<Property>& properties) {
    const std::string key = text(node, "x-short-form");
    const bool is_there =
        std::any_of(properties.begin(), properties.end(), [&](const auto& one) { return one.name == key; });
    if (key.empty() || is_there) return;
    error(*node.find("x-short-form"), "x-short-form names " + core::in_quotes(key) + ", which is not a property");
  }

  bool read_element(const Node& node, const char* keyword, Property& property) {
    const Node* element = node.find(keyword);
    if (!element) {
      error(node, std::string("the keyword ") + keyword + " is missing, so the type of the values is unknown");
      return false;
    }
    property.element = std::make_shared<Property>(read_property("", *element));
    return true;
  }

  /// A keyword that does not apply to the type is an error of the author and not skipped.
  void applies(const Node& node, const Property& property) {
    const bool numeric = property.type == Type::kInteger || property.type == Type::kNumber ||
                         property.type == Type::kBytes || property.type == Type::kDuration;
    const bool textual = property.type == Type::kString || property.type == Type::kPath;
    const auto only = [&](bool fits, std::initializer_list<const char*> keywords, const char* what) {
      if (fits) return;
      for (const char* keyword : keywords)
        if (const Node* value = node.find(keyword))
          error(*value, std::string(keyword) + " applies to " + what + " only");
    };
    only(numeric, {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}, "numbers");
    only(property.type == Type::kInteger, {"x-auto"}, "integers");
    only(property.type == Type::kBoolean, {"x-count"}, "booleans");
    only(textual, {"enum", "pattern", "x-pattern-hint", "minLength"}, "texts");
    only(property.type == Type::kArray, {"items", "minItems", "maxItems", "x-single", "x-words"}, "arrays");
    only(property.type == Type::kObject, {"x-short-form"}, "objects with properties");
    only(property.type == Type::kObject || property.type == Type::kMap, {"properties", "additionalProperties"},
         "objects");
    if (property.single && property.element && property.element->type == Type::kArray)
      error(*node.find("x-single"), "x-single does not work for a list of lists: one scalar could mean either");
    if (!property.pattern.empty()) {
      if (!is_pattern(property.pattern))
        error(*node.find("pattern"), "pattern is not a regular expression: " + core::in_quotes(property.pattern));
      if (property.pattern_hint.empty())
        error(*node.find("pattern"), "pattern needs an x-pattern-hint that describes it in words");
    }
  }

  void read_default(const Node& node, Property& property) {
    const Node* value = node.find("default");
    property.required = !value && property.default_from.empty();
    if (!value) return;
    property.default_value = *value;
    if (value->is_null()) return;
    const std::string why = value_error(property, *value);
    if (!why.empty()) error(*value, "the default does not fit its own type: " + why);
  }

  void read_hash_unset(const Node& node, Property& property) {
    const Node* value = node.find("x-hash-unset");
    if (value == nullptr) return;
    property.hash_unset = *value;
    const bool is_optional = property.default_value && property.default_value->is_null();
    if (!is_optional || !property.hashed || value->is_null())
      return error(*value, "x-hash-unset applies to keys that are counted and whose default is null only",
                   "it is the default that the key had before");
    const std::string why = value_error(property, *value);
    if (!why.empty()) error(*value, "x-hash-unset does not fit the key's own type: " + why);
  }

  void read_holds(const Node& root) {
    fragment_.holds = texts(root, "x-holds");
    const bool tracks = fragment_.kind == "tracker";
    if (tracks != (root.find("x-holds") != nullptr))
      error(root, tracks ? "a tracker lists in x-holds what it keeps" : "x-holds applies to trackers only");
    for (const std::string& word : fragment_.holds)
      if (std::find(holdable().begin(), holdable().end(), word) == holdable().end())
        error(*root.find("x-holds"),
              "x-holds must name some of " + core::joined(holdable()) + ", got " + core::in_quotes(word));
  }

  void read_tool(const Node& root) {
    if (fragment_.kind == "tracker") {
      fragment_.resync = required_text(root, "x-resync");
    } else {
      for (const char* keyword : {"x-resync", "x-configured-by"})
        if (const Node* value = root.find(keyword)) error(*value, std::string(keyword) + " applies to trackers only");
    }
    const Node* signs = root.find("x-configured-by");
    if (signs == nullptr) return;
    if (!signs->is_sequence()) return error(*signs, "x-configured-by must be a list, got " + shown(*signs));
    fragment_.configured_by.emplace();
    for (const Node& node : signs->items()) {
      known_keywords(node, kSignKeywords, "a sign");
      const ToolSign sign = {text(node, "variable"), text(node, "pattern"), text(node, "file"), text(node, "holds")};
      if (sign.variable.empty() == sign.file.empty()) error(node, "a sign is a variable or a file");
      if (!sign.pattern.empty() && !is_pattern(sign.pattern))
        error(*node.find("pattern"), "pattern is not a regular expression: " + core::in_quotes(sign.pattern));
      fragment_.configured_by->push_back(sign);
    }
  }

  void read_checks(const Node& root) {
    const Node* list = root.find("x-checks");
    if (!list) return;
    if (!list->is_sequence()) return error(*list, "x-checks must be a list, got " + shown(*list));
    for (const Node& item : list->items()) {
      if (!item.is_mapping()) {
        error(item, "a check must be an object with rule, at and message, got " + shown(item));
        continue;
      }
      known_keywords(item, kCheckKeywords, "a check");
      Check check{required_text(item, "rule"), required_text(item, "at"), required_text(item, "message"),
                  text(item, "hint")};
      check_rule(item, check.rule);
      if (!check.at.empty() && !fragment_.find(check.at))
        error(*item.find("at"), "at names " + core::in_quotes(check.at) + ", which is not a property");
      for (const char* keyword : {"message", "hint"}) check_braces(item, keyword);
      fragment_.checks.push_back(std::move(check));
    }
  }

  void check_rule(const Node& check, const std::string& rule) {
    if (rule.empty()) return;
    const core::Result<Expression> expression = parse_expression(rule);
    if (!expression.ok()) return error(*check.find("rule"), expression.failure().message, expression.failure().hint);
    for (const std::string& key : expression.value().keys())
      if (!fragment_.find(key))
        error(*check.find("rule"), "the rule uses " + core::in_quotes(key) + ", which is no key");
  }

  void check_braces(const Node& check, const char* keyword) {
    const std::string message = check.find(keyword) ? text(check, keyword) : "";
    for (std::size_t open = message.find('{'); open != std::string::npos; open = message.find('{', open + 1)) {
      const std::string path = message.substr(open + 1, message.find('}', open) - open - 1);
      const std::string key = path.substr(0, path.find_first_of(".["));
      if (!fragment_.find(key))
        error(*check.find(keyword), std::string(keyword) + " uses {" + key + "}, which is not a property");
    }
  }

  void read_examples(const Node& root) {
    const Node* list = root.find("examples");
    if (!list) {
      if (fragment_.kind != "section") error(root, "a component needs at least one entry in examples");
      return;
    }
    if (!list->is_sequence()) return error(*list, "examples must be a list, got " + shown(*list));
    for (const Node& example : list->items()) {
      const Node* type = example.find("type");
      const bool named = example.is_string() || (type && type->is_string() && type->as_string() == fragment_.name);
      if (fragment_.kind != "section" && !named)
        error(example, "an example of this component must have type " + core::in_quotes(fragment_.name));
      fragment_.examples.push_back(example);
    }
  }

  void check_siblings(const std::vector<Property>& properties) {
    std::set<std::string> names;
    for (const Property& property : properties) names.insert(property.name);
    for (const Property& property : properties) {
      for (const std::string& other : property.exclusive_with)
        if (!names.count(other) || other == property.name)
          diagnostics_.error(property.location, "x-exclusive of " + core::in_quotes(property.name) + " names " +
                                                    core::in_quotes(other) +
                                                    ", which is not another key of the same block");
      for (const std::string& alias : property.aliases)
        if (!names.insert(alias).second)
          diagnostics_.error(property.location, "the alias " + core::in_quotes(alias) + " of " +
                                                    core::in_quotes(property.name) + " is taken by another key");
    }
  }

  Fragment& fragment_;
  core::Diagnostics& diagnostics_;
};

void visit_keys(const std::string& above, std::vector<Property>& keys,
                const std::function<void(const std::string&, Property&)>& visit) {
  for (Property& key : keys) {
    const std::string name = core::join_path(above, key.name);
    visit(name, key);
    Property* object = &key;
    while (object->element) object = object->element.get();
    visit_keys(name, object->properties, visit);
  }
}

}  // namespace

const std::vector<std::string>& holdable() {
  static const std::vector<std::string> words = {"scalars", "texts",     "histograms", "images",
                                                 "tables",  "artifacts", "console",    "hyperparameters"};
  return words;
}

const Property* Fragment::find(const std::string& key) const {
  for (const Property& property : properties)
    if (property.name == key) return &property;
  return nullptr;
}

void for_each_key(Fragment& fragment, const std::function<void(const std::string&, Property&)>& visit) {
  visit_keys("", fragment.properties, visit);
}

std::optional<Fragment> parse_fragment(const std::string& kind, const std::string& name, const std::string& file_name,
                                       const std::string& json_text, core::Diagnostics& diagnostics) {
  auto source = std::make_shared<core::Source>(core::Source{file_name, json_text, core::Source::Kind::kFile});
  core::Diagnostics found;
  const std::optional<Node> root = recipe::read_json(source, {}, found);
  Fragment fragment;
  fragment.kind = kind;
  fragment.name = name;
  fragment.text = json_text;
  if (root) Reader(fragment, found).read(*root);
  diagnostics.add_all(found);
  if (!root || found.has_errors()) return std::nullopt;
  return fragment;
}

}  // namespace runner::registry

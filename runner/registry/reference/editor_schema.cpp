#include "runner/registry/reference/editor_schema.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "runner/registry/alias.h"
#include "runner/registry/tracker_aliases.h"

namespace runner::registry {
namespace {

using Json = nlohmann::ordered_json;
using Type = Property::Type;

constexpr const char* kReference = "\\$\\{";
constexpr const char* kNumber = "[0-9]*\\.?[0-9]+([eE][+-]?[0-9]+)?";
constexpr const char* kTime = "(s|min|h|d)";

Json json_of(const core::Node& node) { return Json::parse(core::to_json(node, -1)); }

Json definition(const std::string& name) { return {{"$ref", "#/definitions/" + name}}; }

/// A short rendering of a value for hover text.
std::string shown(const core::Node& node) {
  if (node.is_null()) return "";
  if (node.is_sequence() || node.is_mapping()) return core::to_json(node, -1);
  return node.scalar_text();
}

class Assembler {
 public:
  explicit Assembler(const Registry& registry) : registry_(registry) {
    core::Diagnostics ignored;  // schema_gen has read the table before
    if (!registry.aliases_json().empty()) aliases_ = parse_aliases(registry.aliases_json(), ignored);
  }

  Json assemble() {
    const Fragment* top = registry_.find("section", "recipe");
    if (!top) return Json::object();
    find_list_kinds(top->properties);
    for (const Kind& kind : registry_.kinds())
      for (const std::string& name : registry_.names(kind.name))
        if (const Fragment* fragment = registry_.find(kind.name, name)) find_list_kinds(fragment->properties);

    Json root = {{"$schema", "http://json-schema.org/draft-07/schema#"}, {"title", "roux recipe"}};
    root["description"] = top->description;
    root["type"] = "object";
    Json properties = Json::object();
    for (const Property& property : top->properties) add_property(properties, property);
    add_aliases(properties, "", *top);
    for (const char* word : kAccelerateTrackerWords) {
      properties[word] = {{"type", "object"}};
      deprecate(properties[word], "trackers");
    }
    for (const char* word : kShardingWords) {
      properties[word] = Json::object();
      deprecate(properties[word], "parallelism");
    }
    root["properties"] = std::move(properties);
    root["additionalProperties"] = false;

    Json definitions = Json::object();
    definitions["reference"] = {{"type", "string"}, {"pattern", kReference}};
    for (const Property& property : top->properties)
      if (property.type == Type::kSection) add_section(definitions, property.name);
    for (const Kind& kind : registry_.kinds()) add_kind(definitions, kind);
    share_properties(definitions);
    root["definitions"] = std::move(definitions);
    return root;
  }

 private:
  /// Kinds that stand in lists alone: their blocks are never merged with those of another file, so they must be
  /// complete.
  void find_list_kinds(const std::vector<Property>& properties) {
    for (const Property& property : properties) {
      const bool list = property.type == Type::kArray;
      if (list && property.element->type == Type::kComponent) {
        list_kinds_.insert(property.element->kind);
        words_[property.element->kind] = property.words;
      }
      if (property.type == Type::kComponent) single_kinds_.insert(property.kind);
      find_list_kinds(property.properties);
    }
  }

  static std::string described(const Property& property) {
    std::string text = property.description;
    if (!property.unit.empty()) text += "\n\nUnit: " + property.unit + ".";
    if (!property.default_from.empty()) text += "\n\nDefault: taken from " + property.default_from + ".";
    if (property.default_value && !shown(*property.default_value).empty())
      text += "\n\nDefault: `" + shown(*property.default_value) + "`.";
    return text;
  }

  void add_property(Json& properties, const Property& property) {
    Json schema = {{"description", described(property)}};
    schema.update(value_of(property));
    if (property.default_value && !property.default_value->is_null())
      schema["default"] = json_of(*property.default_value);
    if (!property.examples.empty()) {
      schema["examples"] = Json::array();
      for (const core::Node& example : property.examples) schema["examples"].push_back(json_of(example));
    }
    for (const std::string& alias : property.aliases) {
      Json old = value_of(property);
      deprecate(old, property.name);
      properties[alias] = std::move(old);
    }
    properties[property.name] = std::move(schema);
  }

  /// A long property that several blocks have alike is written once, as `property.NAME`.
  static void share_properties(Json& definitions) {
    constexpr std::size_t kLong = 100;
    std::map<std::string, int> uses;
    for (const Json& block : definitions)
      if (block.contains("properties"))
        for (const Json& property : block["properties"]) ++uses[property.dump()];
    std::map<std::string, std::string> names;  // by text
    Json shared = Json::object();
    for (Json& block : definitions) {
      if (!block.contains("properties")) continue;
      for (auto& [key, property] : block["properties"].items()) {
        const std::string text = property.dump();
        if (text.size() <= kLong || uses[text] < 2) continue;
        std::string& name = names[text];
        for (int number = 1; name.empty(); ++number) {
          const std::string free = "property." + key + (number == 1 ? "" : "-" + std::to_string(number));
          if (!shared.contains(free)) shared[name = free] = property;
        }
        property = definition(name);
      }
    }
    definitions.update(shared);
  }

  static void deprecate(Json& schema, const std::string& instead) {
    schema["description"] = "Another name of `" + instead + "`.";
    schema["deprecated"] = true;
    schema["deprecationMessage"] = "write " + instead;
  }

  /// What may stand for the value; a reference always may.
  Json value_of(const Property& property) {
    const bool nullable = property.default_value && property.default_value->is_null();
    Json schema = bare_value_of(property);
    if (!nullable) return schema;
    if (schema.contains("type")) {
      if (!schema["type"].is_array()) schema["type"] = Json::array({schema["type"]});
      schema["type"].push_back("null");
      if (!schema.contains("anyOf")) return schema;
    }
    if (schema.contains("anyOf")) schema["anyOf"].push_back({{"type", "null"}});
    if (schema.contains("$ref")) schema = {{"anyOf", Json::array({schema, Json{{"type", "null"}}})}};
    return schema;
  }

  Json bare_value_of(const Property& property) {
    const std::string number = kNumber;
    switch (property.type) {
      case Type::kBoolean:
        if (property.count_key.empty()) return scalar("boolean", property, "");
        return {{"anyOf", Json::array({scalar("boolean", property, ""), Json{{"type", "integer"}, {"minimum", 1}}})}};
      case Type::kInteger: return scalar("integer", property, property.or_auto ? "^auto$" : "");
      case Type::kNumber: return scalar("number", property, "");
      case Type::kInterval:
        return scalar("integer", property, "^(" + number + "(ep|ba|tok|sp|dur)|(" + number + kTime + ")+)$");
      case Type::kDuration: return scalar("number", property, "^(" + number + kTime + ")+$");
      case Type::kBytes: return scalar("integer", property, "^" + number + " *([kKmMgGtT][iI]?[bB])?$");
      case Type::kString:
      case Type::kPath: return text_of(property);
      case Type::kSecret:
        return {{"anyOf", Json::array({definition("reference"), Json{{"type", "object"},
                                                                     {"properties", {{"file", {{"type", "string"}}}}},
                                                                     {"required", {"file"}},
                                                                     {"additionalProperties", false}}})}};
      case Type::kArray: return list_of(property);
      case Type::kObject: return object_or_short_form(property);
      case Type::kMap:
        return object_or_reference({{"type", "object"}, {"additionalProperties", value_of(*property.element)}});
      case Type::kComponent: return definition(property.kind);
      case Type::kSection: return definition("section." + property.name);
      case Type::kAny: return Json::object();
    }
    return Json::object();
  }

  /// One type and texts beside it: the bounds speak of numbers only, the pattern of texts only.
  static Json scalar(const char* type, const Property& property, const std::string& text_pattern) {
    Json schema = {{"type", {type, "string"}}};
    if (property.minimum) schema["minimum"] = *property.minimum;
    if (property.maximum) schema["maximum"] = *property.maximum;
    if (property.exclusive_minimum) schema["exclusiveMinimum"] = *property.exclusive_minimum;
    if (property.exclusive_maximum) schema["exclusiveMaximum"] = *property.exclusive_maximum;
    schema["pattern"] = text_pattern.empty() ? kReference : std::string(kReference) + "|" + text_pattern;
    return schema;
  }

  static Json text_of(const Property& property) {
    if (!property.enum_values.empty()) {
      Json words = {{"type", "string"}, {"enum", property.enum_values}};
      const auto& names = property.enum_values;
      if (std::find(names.begin(), names.end(), "true") != names.end()) {  // YAML reads these two as booleans
        words["type"] = Json::array({"string", "boolean"});
        words["enum"].insert(words["enum"].end(), {true, false});
      }
      return {{"anyOf", Json::array({words, definition("reference")})}};
    }
    Json schema = {{"type", "string"}};
    if (property.min_length) schema["minLength"] = *property.min_length;
    if (!property.pattern.empty()) schema["pattern"] = std::string(kReference) + "|" + property.pattern;
    return schema;
  }

  Json list_of(const Property& property) {
    Json list = {{"type", "array"}, {"items", value_of(*property.element)}};
    if (property.min_items) list["minItems"] = *property.min_items;
    if (property.max_items) list["maxItems"] = *property.max_items;
    // Where one type list can say it, errors stay with the item that is wrong; a choice only says that none fits.
    const Type element = property.element->type;
    const bool of_texts = (element == Type::kString || element == Type::kPath) && property.element->enum_values.empty();
    if (!property.single || of_texts) {
      list["type"] = {"array", "string"};
      if (!property.single) list["pattern"] = property.words.empty() ? kReference : with_words(property);
      return list;
    }
    return {{"anyOf", Json::array({list, value_of(*property.element), definition("reference")})}};
  }

  /// A reference, a word, or the name of one component.
  std::string with_words(const Property& property) const {
    std::string pattern = std::string(kReference) + "|^(";
    for (const std::string& word : property.words) pattern += word + "|";
    for (const std::string& name : registry_.names(property.element->kind)) pattern += name + "|";
    pattern.back() = ')';
    return pattern + "$";
  }

  Json object_or_short_form(const Property& property) {
    Json object = object_or_reference(closed(property.properties, true));
    for (const Property& key : property.properties) {
      if (key.name == property.short_form) return {{"anyOf", Json::array({object, value_of(key)})}};
    }
    return object;
  }

  static Json object_or_reference(Json object) {
    object["type"] = {"object", "string"};
    object["pattern"] = kReference;
    return object;
  }

  /// An object that knows these keys and no others. `complete`: what has no default must be there.
  Json closed(const std::vector<Property>& properties, bool complete) {
    Json schema = {{"type", "object"}, {"properties", Json::object()}, {"additionalProperties", false}};
    Json needed = Json::array();
    for (const Property& property : properties) {
      add_property(schema["properties"], property);
      if (property.required && property.aliases.empty()) needed.push_back(property.name);
    }
    if (complete && !needed.empty()) schema["required"] = needed;
    add_exclusive(schema, properties);
    return schema;
  }

  static void add_exclusive(Json& schema, const std::vector<Property>& properties) {
    for (const Property& property : properties)
      for (const std::string& other : property.exclusive_with)
        schema["allOf"].push_back({{"not", {{"required", {property.name, other}}}},
                                   {"errorMessage", property.name + " and " + other + " are mutually exclusive"}});
  }

  /// The words of aliases.json that people write in this section (or in the blocks of the kind that stands there).
  void add_aliases(Json& properties, const std::string& section, const Fragment& fragment) {
    for (const Alias& alias : aliases_.aliases) {
      if (std::find(alias.at.begin(), alias.at.end(), section) == alias.at.end()) continue;
      if (properties.contains(alias.word)) continue;
      const Property* target = find_target(alias.path, fragment);
      Json schema = alias.values.empty() && target ? value_of(*target) : words_of(alias);
      if (!alias.fraction.empty()) schema = {{"anyOf", Json::array({schema, {{"type", "number"}}})}};
      deprecate(schema, shown_path(alias.path));
      properties[alias.word] = std::move(schema);
    }
  }

  static Json words_of(const Alias& alias) {
    if (alias.values.empty()) return Json::object();
    Json words = Json::array();
    for (const auto& [word, ours] : alias.values) {
      if (word == "true" || word == "false") {
        words.push_back(word == "true");
      } else {
        words.push_back(word);
      }
    }
    Json kinds = Json::array({Json{{"enum", words}}, definition("reference")});
    if (alias.list) kinds.push_back({{"type", {"string", "array"}}});
    return {{"anyOf", kinds}};
  }

  const Property* find_target(const std::string& path, const Fragment& here) const {
    const std::size_t dot = path.find('.');
    const Fragment* top = registry_.find("section", "recipe");
    if (const std::size_t open = path.find('['); open != std::string::npos) {
      const std::string kind = top->find(section_of(path))->element->kind;
      return registry_.find(kind, path.substr(open + 1, path.find(']') - open - 1))->find(path.substr(dot + 1));
    }
    const Property* property = top->find(path.substr(0, dot));
    if (!property || dot == std::string::npos) return property;
    const std::string key = path.substr(dot + 1);
    if (property->type == Type::kComponent) return here.kind == property->kind ? here.find(key) : nullptr;
    const Fragment* section = registry_.find("section", property->name);
    return section ? section->find(key) : nullptr;
  }

  void add_section(Json& definitions, const std::string& name) {
    const Fragment* fragment = registry_.find("section", name);
    if (!fragment) return;
    Json object = closed(fragment->properties, false);
    add_aliases(object["properties"], name, *fragment);
    object["description"] = fragment->title + ". " + fragment->description;
    const Property* shorthand = fragment->find(fragment->short_form);
    if (shorthand) {
      definitions["section." + name] = {{"anyOf", Json::array({object, value_of(*shorthand)})}};
    } else {
      definitions["section." + name] = object_or_reference(std::move(object));
    }
  }

  void add_kind(Json& definitions, const Kind& kind) {
    const bool complete = list_kinds_.contains(kind.name) && !single_kinds_.contains(kind.name);
    const Fragment* common = registry_.common(kind.name);
    Json names = Json::array();
    Json titles = Json::array();
    Json bare = Json::array();
    Json cases = Json::array();
    for (const std::string& name : registry_.names(kind.name)) {
      const Fragment* fragment = registry_.find(kind.name, name);
      names.push_back(name);
      titles.push_back(fragment->title);
      bool needs = false;
      for (const Property& property : fragment->properties) needs = needs || property.required;
      if (!needs) bare.push_back(name);
      cases.push_back(
          {{"if", {{"type", "object"}, {"properties", {{"type", {{"const", name}}}}}, {"required", {"type"}}}},
           {"then", definition(kind.name + "." + name)}});
      definitions[kind.name + "." + name] = component(*fragment, common, complete);
    }
    Json type = {{"description", "Which of the " + kind.title + ": `roux list " + kind.name + "` describes them."}};
    for (const std::string& word : words_[kind.name]) bare.push_back(word);
    type["anyOf"] =
        Json::array({Json{{"type", "string"}, {"enum", names}, {"enumDescriptions", titles}}, definition("reference")});
    cases.push_back({{"if", {{"type", "string"}}},
                     {"then", {{"anyOf", Json::array({Json{{"enum", bare}}, definition("reference")})}}}});
    Json block = {{"title", kind.title}, {"type", {"object", "string"}}, {"properties", {{"type", type}}}};
    if (complete) block["required"] = {"type"};
    block["allOf"] = cases;
    if (!bare.empty()) block["examples"] = bare;
    definitions[kind.name] = block;
  }

  Json component(const Fragment& fragment, const Fragment* common, bool complete) {
    Json schema = {{"title", fragment.title}, {"description", fragment.description}};
    schema.update(closed(fragment.properties, complete));
    if (common) {
      for (const Property& property : common->properties) add_property(schema["properties"], property);
      add_exclusive(schema, common->properties);
    }
    add_aliases(schema["properties"], fragment.kind, fragment);
    schema["properties"]["type"] = {{"const", fragment.name}, {"description", fragment.title + "."}};
    return schema;
  }

  const Registry& registry_;
  AliasTable aliases_;
  std::set<std::string> list_kinds_;
  std::set<std::string> single_kinds_;
  std::map<std::string, std::vector<std::string>> words_;  // by the kind in whose list they may stand
};

bool holds_properties(const Json& value) {
  if (!value.is_structured()) return false;
  return value.contains("properties") || std::any_of(value.begin(), value.end(), holds_properties);
}

/// A line for each property, or for several short ones, so that a change of a property is a change of one line.
std::string one_line_each(const Json& value, bool expand, const std::string& indent) {
  constexpr std::size_t kColumns = 240;
  const std::string text = value.dump();
  if (!expand && (text.size() <= kColumns || !holds_properties(value))) return text;
  std::string out = value.is_array() ? "[" : "{";
  std::size_t columns = kColumns;  // of the line that is written; a first member begins one
  const char* comma = "";
  for (const auto& [key, member] : value.items()) {
    const bool listed = value.is_object() && (key == "properties" || key == "definitions");
    const std::string entry = (value.is_object() ? Json(key).dump() + ": " : "") +
                              one_line_each(member, listed && !member.empty(), indent + " ");
    const bool joins = columns + 2 + entry.size() <= kColumns;
    out += comma + (joins ? " " : "\n" + indent + " ") + entry;
    columns = joins ? columns + 2 + entry.size() : indent.size() + 1 + entry.size();
    comma = ",";
  }
  return out + "\n" + indent + (value.is_array() ? "]" : "}");
}

}  // namespace

std::string editor_schema(const Registry& registry) {
  return one_line_each(Assembler(registry).assemble(), true, "") + "\n";
}

}  // namespace runner::registry

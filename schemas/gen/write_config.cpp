#include <algorithm>
#include <functional>
#include <set>

#include "runner/core/units.h"
#include "schemas/gen/cpp_names.h"
#include "schemas/gen/generator.h"

namespace schemas::gen {
namespace {

using runner::core::Node;
using runner::registry::Fragment;
using runner::registry::Kind;
using runner::registry::Property;
using Type = Property::Type;

bool is_nullable(const Property& property) { return property.default_value && property.default_value->is_null(); }
bool is_enum(const Property& property) { return property.type == Type::kString && !property.enum_values.empty(); }

std::string namespace_of(const Fragment& fragment, const Kind* kind) {
  return (kind ? kind->namespace_ : "runner::sections") + "::" + fragment.name;
}

/// The C++ type of a value, without the std::optional around a key that may be absent. `name` names nested types.
std::string cpp_type(const Property& property, const std::string& name) {
  switch (property.type) {
    case Type::kBoolean: return "bool";
    case Type::kInteger:
    case Type::kBytes: return "std::int64_t";
    case Type::kNumber:
    case Type::kDuration: return "double";
    case Type::kString: return is_enum(property) ? camel_case(name) : "std::string";
    case Type::kPath:
    case Type::kSecret: return "std::string";
    case Type::kInterval: return "runner::core::Interval";
    case Type::kArray: return "std::vector<" + cpp_type(*property.element, name) + ">";
    case Type::kMap: return "std::vector<std::pair<std::string, " + cpp_type(*property.element, name) + ">>";
    case Type::kObject: return camel_case(name);
    case Type::kSection: return "runner::registry::Boxed<runner::sections::" + property.name + "::Config>";
    case Type::kComponent:
    case Type::kAny: return "runner::core::Node";
  }
  return "";
}

std::string enumerator(const std::string& value) { return "k" + camel_case(value); }

/// The default as a C++ initialiser; "" where the member's own value-initialisation says the same or nothing can be
/// said.
std::string initialiser(const Property& property, const Node& value, const std::string& name) {
  switch (property.type) {
    case Type::kBoolean: return value.as_bool() ? "true" : "false";
    case Type::kInteger: return std::to_string(value.as_integer());
    case Type::kNumber: return cpp_double(value.as_double());
    case Type::kString:
      if (is_enum(property)) return camel_case(name) + "::" + enumerator(value.as_string());
      [[fallthrough]];
    case Type::kPath:
    case Type::kSecret: return cpp_string(value.as_string());
    case Type::kBytes: return std::to_string(runner::core::parse_bytes(value.scalar_text()).value());
    case Type::kDuration: return cpp_double(runner::core::parse_duration_s(value.scalar_text()).value());
    case Type::kInterval: {
      const runner::core::Interval interval = runner::core::parse_interval(value.scalar_text()).value();
      return "{static_cast<runner::core::Interval::Unit>(" + std::to_string(static_cast<int>(interval.unit)) + "), " +
             cpp_double(interval.amount) + "}";
    }
    case Type::kArray: {
      std::string items;
      for (const Node& item : value.items()) {
        const std::string text = initialiser(*property.element, item, name);
        if (text.empty()) return "";
        items += (items.empty() ? "" : ", ") + text;
      }
      return items.empty() ? "" : "{" + items + "}";
    }
    case Type::kMap:
    case Type::kObject:
    case Type::kComponent:
    case Type::kSection:
    case Type::kAny: return "";
  }
  return "";
}

/// Walks a fragment's properties and calls back for every enum and every nested object, the innermost first.
void for_each_nested(const std::vector<Property>& properties,
                     const std::function<void(const Property&, const std::string&)>& visit) {
  // Keys that share their name and their words share the type.
  std::set<std::pair<std::string, std::vector<std::string>>> visited;
  const std::function<void(const std::vector<Property>&)> walk = [&](const std::vector<Property>& list) {
    for (const Property& property : list) {
      const Property* value = &property;
      while (value->element) value = value->element.get();
      if (value->type == Type::kObject) walk(value->properties);
      if (is_enum(*value) && !visited.emplace(property.name, value->enum_values).second) continue;
      if (value->type == Type::kObject || is_enum(*value)) visit(*value, property.name);
    }
  };
  walk(properties);
}

std::string comment_of(const Property& property) {
  std::string comment = one_line(property.description);
  if (!property.unit.empty()) comment += " [" + property.unit + "]";
  return comment.empty() ? "" : "  ///< " + comment;
}

/// The member of a key. A word of C++ is no name: `export` is read into `export_`.
std::string member(const Property& property) { return property.name + (is_cpp_keyword(property.name) ? "_" : ""); }

std::string members(const std::vector<Property>& properties) {
  std::string text;
  for (const Property& property : properties) {
    const std::string type = cpp_type(property, property.name);
    text += "  ";
    if (property.type == Type::kSection) {
      text += type + " " + property.name + (is_nullable(property) ? "{nullptr}" : "");
    } else if (is_nullable(property)) {
      text += "std::optional<" + type + "> " + member(property);
    } else {
      const std::string value =
          property.default_value ? initialiser(property, *property.default_value, property.name) : "";
      // `auto` makes no member, so an enum that shares its key's name is written out by its type.
      text += type + " " + member(property) + (value.empty() ? "{}" : value[0] == '{' ? value : " = " + value);
    }
    text += ";" + comment_of(property) + "\n";
  }
  return text;
}

bool is_boxed(const Property& property) { return property.type == Type::kSection && !is_nullable(property); }

bool has_boxed(const Fragment& fragment) {
  return std::any_of(fragment.properties.begin(), fragment.properties.end(), is_boxed);
}

/// Where the sections are known, their defaults too.
std::string default_constructor(const Fragment& fragment) {
  std::string text;
  for (const Property& property : fragment.properties) {
    if (!is_boxed(property)) continue;
    text += (text.empty() ? "Config::Config()\n    : " : ",\n      ") + property.name +
            "(runner::sections::" + property.name + "::Config())";
  }
  return text.empty() ? "" : text + " {}\n\n";
}

/// How a value of this type is read, as an expression that can be called with a Node.
std::string reader(const Property& property, const std::string& name) {
  switch (property.type) {
    case Type::kBoolean: return "read_boolean";
    case Type::kInteger: return "read_integer";
    case Type::kNumber: return "read_number";
    case Type::kString: return is_enum(property) ? "parse_" + name : "read_text";
    case Type::kPath: return "read_text";
    case Type::kSecret: return "read_secret";
    case Type::kInterval: return "read_interval";
    case Type::kDuration: return "read_duration_s";
    case Type::kBytes: return "read_bytes";
    case Type::kArray:
      return "[](const Node& list) { return read_list(list, " + reader(*property.element, name) + "); }";
    case Type::kMap: return "[](const Node& map) { return read_map(map, " + reader(*property.element, name) + "); }";
    case Type::kObject: return "parse_" + name;
    case Type::kSection: return "runner::sections::" + property.name + "::parse_config";
    case Type::kComponent:
    case Type::kAny: return "read_node";
  }
  return "";
}

std::string read_statements(const std::vector<Property>& properties) {
  std::string text;
  for (const Property& property : properties) {
    const std::string& key = property.name;
    std::string read = reader(property, key);
    // A lambda that is called at once; the readers of lists take the node directly.
    const auto call = [&](const std::string& node) {
      if (property.type == Type::kArray) return "read_list(" + node + ", " + reader(*property.element, key) + ")";
      if (property.type == Type::kMap) return "read_map(" + node + ", " + reader(*property.element, key) + ")";
      return read + "(" + node + ")";
    };
    if (property.default_value) {
      text += "  if (const Node* value = given(block, \"" + key + "\")) config." + member(property) + " = " +
              call("*value") + ";\n";
    } else {
      text += "  config." + member(property) + " = " + call("required(block, \"" + key + "\")") + ";\n";
    }
  }
  return text;
}

std::string parse_enum(const Property& property, const std::string& name) {
  const std::string type = camel_case(name);
  std::string text = "[[maybe_unused]] " + type + " parse_" + name + "(const Node& node) {\n";
  text += "  const std::string& text = node.as_string();\n";
  for (std::size_t i = 0; i + 1 < property.enum_values.size(); ++i)
    text += "  if (text == " + cpp_string(property.enum_values[i]) + ") return " + type +
            "::" + enumerator(property.enum_values[i]) + ";\n";
  text += "  RUNNER_ASSERT(text == " + cpp_string(property.enum_values.back()) + ", \"validation knows the words\");\n";
  text += "  return " + type + "::" + enumerator(property.enum_values.back()) + ";\n}\n\n";
  return text;
}

std::string parse_object(const Property& property, const std::string& name) {
  const std::string type = camel_case(name);
  return "[[maybe_unused]] " + type + " parse_" + name + "(const Node& block) {\n  " + type + " config;\n" +
         read_statements(property.properties) + "  return config;\n}\n\n";
}

std::string to_text_of(const Property& property, const std::string& name) {
  const std::string type = camel_case(name);
  std::string text = "std::string_view to_text(" + type + " value) {\n  switch (value) {\n";
  for (const std::string& word : property.enum_values)
    text += "    case " + type + "::" + enumerator(word) + ": return " + cpp_string(word) + ";\n";
  return text + "  }\n  return \"\";\n}\n\n";
}

/// What a fragment may say and C++ may not; reported at the key.
void check_names(const Fragment& fragment, const Kind* kind, runner::core::Diagnostics& diagnostics) {
  const auto error = [&](const Property& at, const std::string& message) {
    diagnostics.error(at.location, message, "choose another word; the name goes into generated C++");
  };
  std::set<std::string> taken = {"Config", "Inputs", "Node"};
  if (kind) taken.insert(kind->product);
  for_each_nested(fragment.properties, [&](const Property& property, const std::string& name) {
    if (!taken.insert(camel_case(name)).second)
      error(property, "two nested types of this fragment would both be called " + camel_case(name));
    std::set<std::string> enumerators;
    for (const std::string& word : property.enum_values)
      if (camel_case(word).empty() || !enumerators.insert(enumerator(word)).second)
        error(property, "the word \"" + word + "\" of " + name + " makes no enumerator of its own");
  });
  if (is_cpp_keyword(fragment.name)) {
    runner::core::Location location{
        std::make_shared<runner::core::Source>(runner::core::Source{fragment.kind + "/" + fragment.name, "", {}}), 0, 0,
        1};
    diagnostics.error(location, "the name \"" + fragment.name + "\" is a word of C++", "choose another name");
  }
}

}  // namespace

void write_config_header(const Fragment& fragment, const Kind* kind, Outputs& outputs,
                         runner::core::Diagnostics& diagnostics) {
  check_names(fragment, kind, diagnostics);
  std::string text =
      "// Written by schema_gen from schemas/" + fragment.kind + "/" + fragment.name + ".json.\n#pragma once\n\n";
  text +=
      "#include <cstdint>\n#include <limits>\n#include <memory>\n#include <optional>\n#include <string>\n"
      "#include <string_view>\n#include <utility>\n#include <vector>\n\n";
  if (kind) text += "#include \"" + kind->header + "\"\n";
  text += "#include \"runner/core/node.h\"\n#include \"runner/core/units.h\"\n";
  // A new key of a section compiles only who reads that section.
  std::string declared;
  for (const Property& property : fragment.properties)
    if (property.type == Type::kSection)
      declared += "namespace runner::sections::" + property.name + " {\nstruct Config;\n}\n";
  text += declared.empty() ? "\n" : "#include \"runner/registry/boxed.h\"\n\n" + declared + "\n";
  text += "namespace " + namespace_of(fragment, kind) + " {\n\n";
  for_each_nested(fragment.properties, [&](const Property& property, const std::string& name) {
    if (property.type == Type::kObject) {
      text += "struct " + camel_case(name) + " {\n" + members(property.properties) + "};\n\n";
      return;
    }
    text += "enum class " + camel_case(name) + " { ";
    for (std::size_t i = 0; i < property.enum_values.size(); ++i)
      text += (i ? ", " : "") + enumerator(property.enum_values[i]);
    text += " };\nstd::string_view to_text(" + camel_case(name) + " value);\n\n";
  });
  text += "/// " + one_line(fragment.description) + "\n";
  if (!fragment.source.empty()) text += "/// Source: " + one_line(fragment.source) + "\n";
  text += "struct Config {\n";
  if (has_boxed(fragment)) text += "  Config();\n\n";
  text += members(fragment.properties) + "};\n\n";
  text +=
      "/// From a validated block; absent keys keep their defaults.\nConfig parse_config(const runner::core::Node& "
      "block);\n";
  if (kind) {
    text += "\n/// Defined by the component's own .cpp.\nstd::shared_ptr<" + kind->product +
            "> make(const Config& config, const Inputs& inputs);\n";
  }
  text += "\n}  // namespace " + namespace_of(fragment, kind) + "\n";
  outputs[fragment.kind + "/" + fragment.name + ".h"] = text;
}

void write_parsers(const std::string& kind, const std::vector<Fragment>& fragments, Outputs& outputs) {
  // The namespace is taken from the header that was written before, so that the two cannot differ.
  std::string text = "// Written by schema_gen: the parsers of every " + kind + ".\n\n";
  for (const Fragment& fragment : fragments) text += "#include \"generated/" + kind + "/" + fragment.name + ".h\"\n";
  text += "#include \"runner/core/error.h\"\n#include \"runner/registry/config_parse.h\"\n\n";
  for (const Fragment& fragment : fragments) {
    const std::string& header = outputs.at(kind + "/" + fragment.name + ".h");
    const std::size_t begin = header.rfind("namespace ") + 10;  // closes it; others are declared before it
    const std::string space = header.substr(begin, header.find('\n', begin) - begin);
    std::string words;
    std::string local;
    for_each_nested(fragment.properties, [&](const Property& property, const std::string& name) {
      if (property.type == Type::kObject) {
        local += parse_object(property, name);
      } else {
        words += to_text_of(property, name);
        local += parse_enum(property, name);
      }
    });
    text += "namespace " + space +
            " {\nusing namespace runner::registry;  // NOLINT: the readers\nusing runner::core::Node;\n";
    text += local.empty() ? "\n" : "namespace {\n\n" + local + "}  // namespace\n\n";
    text += words + default_constructor(fragment);
    text += "Config parse_config([[maybe_unused]] const Node& block) {\n  Config config;\n" +
            read_statements(fragment.properties) + "  return config;\n}\n\n";
    text += "}  // namespace " + space + "\n\n";
  }
  outputs["base/configs_" + kind + ".cpp"] = text;
}

}  // namespace schemas::gen

#include "runner/registry/alias.h"
#include "runner/registry/value_check.h"
#include "runner/registry/wording.h"
#include "schemas/gen/cpp_names.h"
#include "schemas/gen/generator.h"

namespace schemas::gen {
namespace {

using runner::core::Node;
using runner::registry::Fragment;
using runner::registry::Kind;
using runner::registry::Property;
using Type = Property::Type;

constexpr const char* kHead = "<!-- Written by schema_gen from schemas/; the target `reference` rewrites it. -->\n";

/// Text inside a table: one line, and a bar that is no border.
std::string cell(const std::string& text) {
  std::string out;
  for (const char c : one_line(text)) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

std::string code(const std::string& text) { return "`" + text + "`"; }

std::string value_text(const Node& node) {
  if (!node.is_string()) return node.is_sequence() || node.is_mapping() ? to_json(node, -1) : node.scalar_text();
  const std::string& text = node.as_string();
  // White space at an end cannot be seen without quotes.
  const bool plain = !text.empty() && text.front() > ' ' && text.back() > ' ';
  return plain ? text : to_json(node, -1);
}

/// What may stand there, in words.
std::string type_text(const Property& property) {
  const auto bounded = [&](std::string text) {
    const std::string bounds = runner::registry::bounds_text(property);
    return bounds.empty() ? text : text + ", " + bounds;
  };
  switch (property.type) {
    case Type::kBoolean: return property.count_key.empty() ? "`true` or `false`" : "`true`, `false` or a number";
    case Type::kInteger: return bounded(property.or_auto ? "`auto` or integer" : "integer");
    case Type::kNumber: return bounded("number");
    case Type::kString: {
      if (property.enum_values.empty())
        return property.pattern_hint.empty() ? "text" : "text that must " + property.pattern_hint;
      std::string words;
      for (const std::string& word : property.enum_values) words += (words.empty() ? "" : ", ") + code(word);
      return words;
    }
    case Type::kPath: return "path";
    case Type::kSecret: return "secret: `${env:NAME}` or `{file: PATH}`";
    case Type::kInterval: return "[interval](README.md#intervals-durations-and-sizes)";
    case Type::kDuration: return bounded("[duration](README.md#intervals-durations-and-sizes)");
    case Type::kBytes: return bounded("[size](README.md#intervals-durations-and-sizes)");
    case Type::kArray: {
      std::string count;
      if (property.min_items && property.max_items && *property.min_items == *property.max_items) {
        count = " of " + std::to_string(*property.min_items);
      } else if (property.min_items && *property.min_items > 0) {
        count = ", at least " + std::to_string(*property.min_items);
      }
      const std::string items = type_text(*property.element);
      return (property.single ? "one, or a list" : "list") + count + ": " + items;
    }
    case Type::kObject: return property.short_form.empty() ? "mapping" : property.short_form + " or mapping";
    case Type::kMap: return "mapping of names: " + type_text(*property.element);
    case Type::kComponent: return "[" + property.kind + "](" + property.kind + ".md)";
    case Type::kSection: return "[" + property.name + "](sections.md#" + property.name + ")";
    case Type::kAny: return "anything";
  }
  return "";
}

std::string default_text(const Property& property) {
  if (property.required) return "**required**";
  if (property.default_value)
    return property.default_value->is_null() ? "unset" : code(value_text(*property.default_value));
  return "from " + property.default_from;
}

std::string meaning(const Property& property) {
  std::string text = property.description;
  std::string aliases;
  for (const std::string& alias : property.aliases) aliases += (aliases.empty() ? "" : ", ") + code(alias);
  if (!aliases.empty()) text += " Also called " + aliases + ".";
  return text;
}

void add_rows(const std::vector<Property>& properties, const std::string& prefix, std::string& text) {
  for (const Property& property : properties) {
    const std::string unit = property.unit.empty() ? "" : "; " + property.unit;
    text += "| " + code(prefix + property.name) + " | " + cell(type_text(property) + unit) + " | " +
            cell(default_text(property)) + " | " + cell(meaning(property)) + " |\n";
    if (property.type == Type::kObject) add_rows(property.properties, prefix + property.name + ".", text);
    if (property.element && property.element->type == Type::kObject)
      add_rows(property.element->properties, prefix + property.name + "[].", text);
  }
}

std::string table(const std::vector<Property>& properties) {
  if (properties.empty()) return "No options.\n";
  std::string text = "| Key | Value | Default | Meaning |\n| --- | --- | --- | --- |\n";
  add_rows(properties, "", text);
  return text;
}

std::string rules(const Fragment& fragment) {
  std::string text;
  for (const Property& property : fragment.properties)
    for (const std::string& other : property.exclusive_with)
      text += "- " + code(property.name) + " and " + code(other) + " are mutually exclusive.\n";
  for (const auto& check : fragment.checks) text += "- " + code(check.rule) + "\n";
  return text.empty() ? "" : "\nRules:\n\n" + text;
}

/// How a recipe writes a block of the kind: under `optimizer`, in the list `eval.metrics`, as `data.train`.
struct Wrapping {
  std::string section;  ///< "" at the top level
  const Property* property = nullptr;
};

Wrapping wrapping_of(const std::string& kind, const Schemas& schemas) {
  const auto search = [&](const Fragment& fragment, const std::string& section) -> Wrapping {
    for (const Property& property : fragment.properties) {
      const Property& value = property.element ? *property.element : property;
      if (value.type == Type::kComponent && value.kind == kind) return {section, &property};
    }
    return {};
  };
  for (const Fragment& fragment : schemas.of("section"))
    if (const Wrapping found = search(fragment, fragment.name == "recipe" ? "" : fragment.name); found.property)
      return found;
  for (const Kind& other : schemas.kinds)
    for (const Fragment& fragment : schemas.of(other.name))
      if (const Wrapping found = search(fragment, ""); found.property) return found;
  return {};
}

Node wrapped(const Node& example, const Wrapping& wrapping) {
  Node value = example;
  if (wrapping.property->type == Type::kArray) value = Node::sequence({example});
  if (wrapping.property->type == Type::kMap) {
    value = Node::mapping();
    value.set("train", example);
  }
  Node block = Node::mapping();
  block.set(wrapping.property->name, value);
  if (wrapping.section.empty()) return block;
  Node outer = Node::mapping();
  outer.set(wrapping.section, block);
  return outer;
}

std::string fenced(const Node& block) { return "\n```yaml\n" + to_yaml(block) + "```\n"; }

std::string section_examples(const Fragment& fragment) {
  std::string text;
  for (const Node& example : fragment.examples) {
    Node block = Node::mapping();
    block.set(fragment.name, example);
    text += fenced(block);
  }
  return text;
}

std::string page_of_kind(const Kind& kind, const Schemas& schemas) {
  std::string text = kHead + ("# " + kind.title + "\n");
  const std::vector<Fragment>& fragments = schemas.of(kind.name);
  const Wrapping wrapping = wrapping_of(kind.name, schemas);
  text += "\n`roux list " + kind.name + "` lists them, `roux explain " + kind.name + "/NAME` shows one.\n";
  for (const Fragment& common : schemas.of("section"))
    if (common.name == kind.name + "_common")
      text += "\n## Common options\n\n" + common.description + "\n\n" + table(common.properties) + rules(common);
  for (const Fragment& fragment : fragments) {
    text += "\n## " + fragment.name + "\n\n**" + fragment.title + ".** " + fragment.description + "\n\n" +
            table(fragment.properties) + rules(fragment);
    if (!fragment.holds.empty()) text += "\nRecords " + runner::registry::kept_text(fragment) + ".\n";
    if (!fragment.resync.empty())
      text += "\n`trackers: all` " + runner::registry::taken_text(fragment) +
              ". `roux sync --resync`: " + fragment.resync + ".\n";
    if (wrapping.property)
      for (const Node& example : fragment.examples) text += fenced(wrapped(example, wrapping));
    if (!fragment.source.empty()) text += "\nSource: " + fragment.source + ".\n";
  }
  return text;
}

std::string page_of_sections(const Schemas& schemas) {
  std::string text = kHead + std::string("# The recipe\n");
  const auto add = [&](const Fragment& fragment, const std::string& heading) {
    text += "\n## " + heading + "\n\n**" + fragment.title + ".** " + fragment.description + "\n\n" +
            table(fragment.properties) + rules(fragment) + section_examples(fragment);
    if (!fragment.short_form.empty())
      text += "\n`" + fragment.name + ": VALUE` is short for `" + fragment.name + ": {" + fragment.short_form +
              ": VALUE}`.\n";
  };
  const std::vector<Fragment>& sections = schemas.of("section");
  for (const Fragment& top : sections) {
    if (top.name != "recipe") continue;
    add(top, "Top level");
    for (const Property& property : top.properties)
      for (const Fragment& fragment : sections)
        if (property.type == Type::kSection && fragment.name == property.name) add(fragment, fragment.name);
  }
  return text;
}

std::string page_of_words(const Schemas& schemas) {
  runner::core::Diagnostics ignored;  // read and checked before
  const runner::registry::AliasTable table = runner::registry::parse_aliases(schemas.aliases_json, ignored);
  std::string text =
      kHead + std::string("# Names from other frameworks\n\nThese keys are accepted, with a notice. ") +
      "Giving both names is an error.\n\n| Word | Where | Read as | Values |\n| --- | --- | --- | --- |\n";
  for (const auto& alias : table.aliases) {
    std::string places;
    for (const std::string& at : alias.at)
      places += (places.empty() ? "" : ", ") + (at.empty() ? std::string("top level") : code(at));
    std::string values;
    for (const auto& [word, ours] : alias.values)
      values += (values.empty() ? "" : ", ") + code(word) + " -> " + (ours.empty() ? "no effect" : code(ours));
    for (const auto& [word, hint] : alias.refused)
      values += (values.empty() ? "" : ", ") + code(word) + ": refused, " + hint;
    text += "| " + code(alias.word) + " | " + places + " | " + code(runner::registry::shown_path(alias.path)) + " | " +
            cell(values) + " |\n";
  }
  text +=
      "\nThese have no equivalent; the error message says what to write instead.\n\n| Word | Instead |\n| --- | --- "
      "|\n";
  for (const auto& word : table.foreign) text += "| " + code(word.word) + " | " + cell(word.hint.text) + " |\n";
  return text;
}

std::string index_page(const Schemas& schemas) {
  std::string text = kHead;
  text +=
      "# Reference of the recipe\n\n"
      "All keys of a recipe, generated from the schemas that validate recipes.\n\n"
      "- [The recipe](sections.md): the top level and its sections\n"
      "- [Names from other frameworks](words.md): which are accepted, and what to write instead of the others\n\n"
      "| Kind | Names |\n| --- | --- |\n";
  for (const Kind& kind : schemas.kinds) {
    std::string names;
    for (const Fragment& fragment : schemas.of(kind.name))
      names += (names.empty() ? "" : ", ") + std::string("[") + fragment.name + "](" + kind.name + ".md#" +
               fragment.name + ")";
    text += "| [" + kind.title + "](" + kind.name + ".md) | " + names + " |\n";
  }
  text +=
      "\n## Intervals, durations and sizes\n\n"
      "| Value | Written as |\n| --- | --- |\n"
      "| interval | an integer counts optimizer steps; `2ep` epochs, `500ba` micro-batches of a process, `5000sp` "
      "samples, "
      "`1e6tok` tokens, `90s` `30min` `2h` `1d` time, `0.1dur` a fraction of the training |\n"
      "| duration | a number of seconds, or `90s`, `30min`, `1h30min`, `2d` |\n"
      "| size | a number of bytes, or `500MB`, `10GB` (powers of 1000), `5GiB` (powers of 1024) |\n\n"
      "## Editors\n\n"
      "An editor with the YAML language server completes and checks a recipe that begins with\n\n"
      "```yaml\n# yaml-language-server: $schema=../schemas/recipe.schema.json\n```\n\n"
      "`roux schema` prints that file.\n";
  return text;
}

}  // namespace

void write_reference(const Schemas& schemas, Outputs& outputs) {
  outputs["reference/README.md"] = index_page(schemas);
  outputs["reference/sections.md"] = page_of_sections(schemas);
  if (!schemas.aliases_json.empty()) outputs["reference/words.md"] = page_of_words(schemas);
  for (const Kind& kind : schemas.kinds) outputs["reference/" + kind.name + ".md"] = page_of_kind(kind, schemas);
}

}  // namespace schemas::gen

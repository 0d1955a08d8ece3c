#include "runner/cli/group/import/axolotl_prompt.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "runner/core/text/utf8.h"
#include "runner/words/draft.h"

namespace runner::cli {
namespace {

using core::Node;
using words::asks_for_something;

constexpr const char* kKeys[] = {"system_prompt", "system_format", "field_system", "field_instruction",
                                 "field_input",   "field_output",  "format",       "no_input_format"};

const Node* given(const Node& type, const char* key) {
  const Node* value = type.find(key);
  return value != nullptr && asks_for_something(*value) ? value : nullptr;
}

std::string text_of(const Node& type, const char* key, const char* usual) {
  const Node* value = given(type, key);
  return value != nullptr ? value->scalar_text() : usual;
}

/// What stands around the only `{name}` of a text; nothing where there is none, or another brace.
std::optional<std::pair<std::string, std::string>> around(const std::string& text, const std::string& name) {
  const std::size_t at = text.find(name);
  if (at == std::string::npos) return std::nullopt;
  std::pair<std::string, std::string> parts{text.substr(0, at), text.substr(at + name.size())};
  const auto has_brace = [](const std::string& part) { return part.find_first_of("{}") != std::string::npos; };
  return has_brace(parts.first) || has_brace(parts.second) ? std::nullopt : std::optional(std::move(parts));
}

}  // namespace

core::Result<Node> format_of_prompt(const Node& type) {
  for (const Node::Entry& entry : type.entries()) {
    const auto is = [&entry](const char* key) { return entry.key == key; };
    if (std::any_of(std::begin(kKeys), std::end(kKeys), is)) continue;
    return core::Failure{core::quote(entry.key) + " is not a key of a type that is a mapping", "remove it"};
  }
  const std::string field = text_of(type, "field_system", "system");
  if (field != "system") {
    return core::Failure{"the field of the system message is " + field + ", and not system",
                         "rename it in the data: jq -c '.system = ." + field + "' FILE.jsonl"};
  }
  static const std::string kLine = "{instruction}\n{input}";
  std::string with = text_of(type, "format", "{instruction} {input} ");
  const std::string without = text_of(type, "no_input_format", "{instruction} ");
  if (given(type, "format") == nullptr && given(type, "no_input_format") == nullptr) with = without;
  if (const std::size_t at = with.find(kLine); at != std::string::npos) with.replace(at, kLine.size(), "{instruction}");
  if (with.find("{input}") != std::string::npos) {
    return core::Failure{"format writes an instruction and its input otherwise than with a line break between them",
                         "write {instruction}, a line break and {input} next to each other"};
  }
  const auto turn = around(without, "{instruction}"),
             system = around(text_of(type, "system_format", "{system}"), "{system}");
  if (!turn || !system) {
    return core::Failure{"a format has braces other than {instruction}, {input} and {system}",
                         "write each of them once, and no other brace"};
  }
  if (with != without) {
    return core::Failure{"format and no_input_format differ in more than the input, and roux has one of them",
                         "write no_input_format, and what stands around the instruction and its input alike in both"};
  }
  Node format = Node::mapping();
  format.set("begin", Node::string("{bos}"));
  if (const std::string text = text_of(type, "system_prompt", ""); !text.empty())
    format.set("default_system", Node::string(text));
  if (!system->first.empty()) format.set("before_system", Node::string(system->first));
  if (!system->second.empty()) format.set("after_system", Node::string(system->second));
  format.set("before_user", Node::string(turn->first));
  format.set("before_assistant", Node::string(turn->second));
  format.set("assistant_end", Node::string("{eos}"));
  return format;
}

}  // namespace runner::cli

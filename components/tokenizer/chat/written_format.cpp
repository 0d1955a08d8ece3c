#include "components/tokenizer/chat/chat_writer.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "components/template/template.h"
#include "runner/core/platform/files.h"
#include "runner/core/text/suggest.h"
#include "runner/core/text/text.h"

namespace components::tokenizer {
namespace {

using runner::core::Diagnostics;
using runner::core::Node;

struct TextKey {
  const char* name;
  std::string ChatFormat::*member;
};

constexpr TextKey kTexts[] = {{"begin", &ChatFormat::begin},
                              {"before_system", &ChatFormat::before_system},
                              {"after_system", &ChatFormat::after_system},
                              {"before_user", &ChatFormat::before_user},
                              {"after_user", &ChatFormat::after_user},
                              {"before_assistant", &ChatFormat::before_assistant},
                              {"assistant_start", &ChatFormat::assistant_start},
                              {"assistant_end", &ChatFormat::assistant_end},
                              {"after_assistant", &ChatFormat::after_assistant},
                              {"before_other", &ChatFormat::before_other},
                              {"after_other", &ChatFormat::after_other}};

struct SwitchKey {
  const char* name;
  bool ChatFormat::*member;
};

constexpr SwitchKey kSwitches[] = {{"strip", &ChatFormat::strip}, {"alternate", &ChatFormat::alternate}};

constexpr std::int64_t kTemplateBytesMax = 1 << 20;

constexpr const char *kType = "type", *kDefaultSystem = "default_system", *kSystemIn = "system_in",
                     *kTemplate = "template", *kVariables = "variables";

struct PlaceWord {
  const char* name;
  SystemPlace place;
};

constexpr PlaceWord kPlaces[] = {{"any_turn", SystemPlace::kAnyTurn},
                                 {"first_turn", SystemPlace::kFirstTurn},
                                 {"first_user", SystemPlace::kFirstUser},
                                 {"last_user", SystemPlace::kLastUser},
                                 {"nowhere", SystemPlace::kNowhere}};

template <typename Entry, std::size_t N>
const Entry* find(const Entry (&table)[N], const std::string& name) {
  const Entry* const at =
      std::find_if(std::begin(table), std::end(table), [&](const Entry& entry) { return name == entry.name; });
  return at != std::end(table) ? at : nullptr;
}

std::string hint_for(const std::string& word, const std::vector<std::string>& known) {
  const std::string near = runner::core::closest(word, known);
  const std::string all = runner::core::joined(known, ", ", [](const std::string& name) { return name; });
  return near.empty() ? "known are " + all : "did you mean \"" + near + "\"? Known are " + all;
}

/// The format of that name; nothing, and an error, when there is none.
std::optional<ChatFormat> named(const Node& name, Diagnostics& diagnostics) {
  if (!name.is_string()) {
    diagnostics.error(name.location(), "chat_format must be a name or a mapping, got " + to_json(name, -1));
    return std::nullopt;
  }
  if (const ChatFormat* known = find_chat_format(name.as_string())) return *known;
  std::vector<std::string> names;
  for (const ChatFormat& format : known_chat_formats()) names.push_back(format.name);
  diagnostics.error(name.location(), "no chat format is called \"" + name.as_string() + "\"",
                    hint_for(name.as_string(), names));
  return std::nullopt;
}

/// Reads a mapping.
class Reader {
 public:
  explicit Reader(Diagnostics& diagnostics) : diagnostics_(diagnostics) { format_.name = "of the recipe"; }

  std::optional<ChatFormat> read(const Node& node) {
    const int before = diagnostics_.error_count();
    const Node* const known = node.find(kType);
    if (known != nullptr) {
      std::optional<ChatFormat> begun = named(*known, diagnostics_);
      if (!begun) return std::nullopt;
      format_ = std::move(*begun);
    }
    for (const Node::Entry& entry : node.entries()) {
      if (entry.key != kType) read(entry);
    }
    if (known != nullptr) return finished(before);
    for (const char* needed : {"before_user", "before_assistant", "assistant_end"}) {
      if (node.find(needed) == nullptr) {
        diagnostics_.error(node.location(), std::string("chat_format needs ") + needed,
                           "give before_user, before_assistant and assistant_end, the token that ends an answer");
      }
    }
    return finished(before);
  }

 private:
  std::optional<ChatFormat> finished(int errors_before) {
    if (diagnostics_.error_count() != errors_before) return std::nullopt;
    return std::move(format_);
  }

  void read(const Node::Entry& entry) {
    const Node& value = entry.value;
    if (const TextKey* text = find(kTexts, entry.key)) {
      if (is(value.is_string(), entry, "a text")) format_.*(text->member) = value.as_string();
    } else if (const SwitchKey* yes = find(kSwitches, entry.key)) {
      if (is(value.is_bool(), entry, "true or false")) format_.*(yes->member) = value.as_bool();
    } else if (entry.key == kDefaultSystem) {
      if (is(value.is_string(), entry, "a text")) format_.default_system = value.as_string();
    } else if (entry.key == kSystemIn) {
      place(entry);
    } else {
      std::vector<std::string> known;
      for (const TextKey& key : kTexts) known.emplace_back(key.name);
      for (const SwitchKey& key : kSwitches) known.emplace_back(key.name);
      known.insert(known.end(), {kDefaultSystem, kSystemIn, kType, kTemplate, kVariables});
      diagnostics_.error(value.location(), "chat_format has no key \"" + entry.key + "\"", hint_for(entry.key, known));
    }
  }

  bool is(bool of_type, const Node::Entry& entry, const char* type) {
    if (!of_type) {
      diagnostics_.error(entry.value.location(),
                         "chat_format." + entry.key + " must be " + type + ", got " + to_json(entry.value, -1));
    }
    return of_type;
  }

  void place(const Node::Entry& entry) {
    if (!is(entry.value.is_string(), entry, "a text")) return;
    const std::string& word = entry.value.as_string();
    if (const PlaceWord* found = find(kPlaces, word)) {
      format_.system_in = found->place;
      return;
    }
    std::vector<std::string> known;
    for (const PlaceWord& each : kPlaces) known.emplace_back(each.name);
    diagnostics_.error(entry.value.location(), "chat_format.system_in is \"" + word + "\"", hint_for(word, known));
  }

  Diagnostics& diagnostics_;
  ChatFormat format_;
};

/// `{template: FILE, variables: {NAME: VALUE}}`, or one of the two.
ChatWriterPtr of_template(const Node& node, const Tokenizer& tokenizer, Diagnostics& diagnostics) {
  const Node *file = node.find(kTemplate), *variables = node.find(kVariables);
  for (const Node::Entry& entry : node.entries()) {
    if (entry.key == kTemplate || entry.key == kVariables) continue;
    diagnostics.error(node.location(), "chat_format has a template, which other keys do not change",
                      "remove the other keys, or edit the template");
    return nullptr;
  }
  if (file != nullptr && !file->is_string()) {
    diagnostics.error(file->location(), "chat_format.template must be a file, got " + to_json(*file, -1));
    return nullptr;
  }
  if (variables != nullptr && !variables->is_mapping()) {
    diagnostics.error(variables->location(),
                      "chat_format.variables must be a mapping of names and values, got " + to_json(*variables, -1));
    return nullptr;
  }
  const Node given = variables != nullptr ? *variables : Node();
  for (const Node::Entry& entry : given.entries()) {
    if (!jinja::is_of_chat(entry.key)) continue;
    diagnostics.error(entry.value.location(), "chat_format.variables." + entry.key + " is given by each record",
                      "remove it");
    return nullptr;
  }
  runner::core::Result<ChatWriterPtr> writer = runner::core::Failure{};
  if (file == nullptr) {
    writer = chat_writer_of(tokenizer, given);
  } else if (const auto text = runner::core::read_file(file->as_string(), kTemplateBytesMax)) {
    writer = template_writer(text.value(), file->as_string(), tokenizer, given);
  } else {
    writer = text.failure();
  }
  if (!writer) {
    diagnostics.error((file != nullptr ? *file : node).location(), writer.failure().message, writer.failure().hint);
    return nullptr;
  }
  for (const Node::Entry& entry : given.entries()) {
    if (writer.value()->reads(entry.key)) continue;
    diagnostics.warning(entry.value.location(), "the chat template reads no variable \"" + entry.key + "\"",
                        "remove it, or look for its name in the template");
  }
  return writer.value();
}

}  // namespace

std::string written_template_file(const Node& node) {
  const Node* file = node.is_mapping() ? node.find(kTemplate) : nullptr;
  return file != nullptr && file->is_string() ? file->as_string() : "";
}

ChatWriterPtr written_chat_writer(const Node& node, const Tokenizer& tokenizer, Diagnostics& diagnostics) {
  if (node.is_mapping() && (node.find(kTemplate) != nullptr || node.find(kVariables) != nullptr)) {
    return of_template(node, tokenizer, diagnostics);
  }
  const auto format = node.is_mapping() ? Reader(diagnostics).read(node) : named(node, diagnostics);
  if (!format) return nullptr;
  auto writer = chat_writer(*format, tokenizer);
  if (writer) return writer.value();
  diagnostics.error(node.location(), writer.failure().message, writer.failure().hint);
  return nullptr;
}

}  // namespace components::tokenizer

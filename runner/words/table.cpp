#include "runner/words/table.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <span>
#include <utility>

#include "runner/core/error.h"
#include "runner/core/json.h"
#include "runner/core/text/text.h"
#include "runner/words/tables.h"

namespace runner::words {
namespace {

using core::Node;

std::string text_of(const Node& node, const char* key) {
  const Node* value = node.find(key);
  return value != nullptr && value->is_string() ? value->as_string() : "";
}

/// A list of texts, or one.
std::vector<std::string> texts_of(const Node& node, std::string_view key) {
  const Node* value = node.find(key);
  if (value == nullptr) return {};
  if (!value->is_sequence()) return {value->scalar_text()};
  std::vector<std::string> texts;
  for (const Node& item : value->items()) texts.push_back(item.scalar_text());
  return texts;
}

/// One that `node` says: a mapping with one of the words, or the value itself.
Outcome outcome_of(const Node& node) {
  if (!node.is_mapping()) return {.value = node};
  Outcome outcome;
  if (const Node* also = node.find("also")) outcome.also = *also;
  if (const Node* to = node.find("to")) outcome.value = *to;
  for (const auto& [key, kind] : {std::pair{"changed", Outcome::Kind::kChanged},
                                  {"no_effect", Outcome::Kind::kNoEffect},
                                  {"planned", Outcome::Kind::kPlanned},
                                  {"refused", Outcome::Kind::kRefused}}) {
    if (node.find(key) == nullptr) continue;
    outcome.kind = kind;
    outcome.text = text_of(node, key);
  }
  outcome.instead = text_of(node, node.find("meanwhile") != nullptr ? "meanwhile" : "instead");
  outcome.unless = texts_of(node, "unless");
  const bool is_kept = outcome.kind != Outcome::Kind::kRefused && outcome.kind != Outcome::Kind::kPlanned;
  outcome.is_fatal = !is_kept && node.find("meanwhile") == nullptr;
  return outcome;
}

Word::As as_of(std::string_view name) {
  static constexpr std::pair<std::string_view, Word::As> kNames[] = {
      {"interval", Word::As::kInterval}, {"per_epoch", Word::As::kPerEpoch}, {"number", Word::As::kNumber},
      {"epochs", Word::As::kEpochs},     {"list", Word::As::kList},          {"model", Word::As::kModel}};
  const auto* const at =
      std::find_if(std::begin(kNames), std::end(kNames), [&](const auto& one) { return one.first == name; });
  return at != std::end(kNames) ? at->second : Word::As::kSame;
}

/// `top`: the entries of the table, which names of entries are among.
std::vector<Word> words_of(const Node& keys, const Node& top);

/// The entry of a path such as `ipex_config.ipex`.
const Node& entry_at(const Node& top, std::string_view path) {
  const std::size_t dot = path.find('.');
  const Node* entry = top.find(path.substr(0, dot));
  RUNNER_ASSERT(entry != nullptr, "a test reads every table of schemas/words");
  return dot == std::string_view::npos ? *entry : entry_at(*entry->find("keys"), path.substr(dot + 1));
}

/// Paths within `from` become those within `to`.
void lead_to(std::vector<Word>& words, const std::string& from, const std::string& to) {
  for (Word& word : words) {
    if (word.path == from || word.path.starts_with(from + ".")) word.path.replace(0, from.size(), to);
    lead_to(word.inner, from, to);
  }
}

Word word_of(const Node::Entry& entry, const Node& top) {
  const Node& node = entry.value.is_string() ? entry_at(top, entry.value.as_string()) : entry.value;
  Word word{.key = entry.key,
            .path = text_of(node, "path"),
            .rule = text_of(node, "rule"),
            .needs = text_of(node, "needs"),
            .note = text_of(node, "note"),
            .outcome = outcome_of(node)};
  word.as = as_of(text_of(node, "as"));
  if (const Node* when = node.find("when")) {
    for (const Node::Entry& other : when->entries()) word.when.emplace_back(other.key, texts_of(*when, other.key));
  }
  if (const Node* fallback = node.find("default")) {
    const bool is_computed = fallback->is_mapping() && fallback->find("of") != nullptr;
    word.fallback = is_computed ? *fallback->find("times") : *fallback;
    if (is_computed) word.fallback_of = text_of(*fallback, "of");
  }
  word.nothing = texts_of(node, "nothing");
  if (const Node* values = node.find("values")) {
    for (const Node::Entry& value : values->entries()) word.values.emplace_back(value.key, outcome_of(value.value));
  }
  if (const Node* other = node.find("other")) word.other = other->is_mapping() ? outcome_of(*other) : Outcome{};
  if (const Node* inner = node.find("keys")) {
    const Node* shared = inner->is_string() ? top.find(inner->as_string()) : nullptr;
    word.inner = words_of(shared != nullptr ? *shared->find("keys") : *inner, top);
    if (shared != nullptr) lead_to(word.inner, text_of(*shared, "path"), word.path);
  }
  return word;
}

std::vector<Word> words_of(const Node& keys, const Node& top) {
  std::vector<Word> words;
  for (const Node::Entry& entry : keys.entries()) words.push_back(word_of(entry, top));
  return words;
}

/// The words of `base`, each as `own` has it where it does, and then the others of `own`.
std::vector<Word> extended(std::vector<Word> base, const std::vector<Word>& own) {
  for (const Word& word : own) {
    const auto same = std::find_if(base.begin(), base.end(), [&](const Word& one) { return one.key == word.key; });
    if (same != base.end()) {
      *same = word;
    } else {
      base.push_back(word);
    }
  }
  return base;
}

const std::map<std::string, Table, std::less<>>& tables() {
  static const auto* const all = [] {
    auto* const found = new std::map<std::string, Table, std::less<>>;
    std::vector<std::pair<std::string, std::string>> heirs;
    for (const std::string_view json : std::span(kTables, kTableCount)) {
      const auto parsed = core::parse_json(json);
      RUNNER_ASSERT(parsed.ok(), "the tests read every table of schemas/words");
      const Node& node = parsed.value();
      std::string name = text_of(node, "name");
      if (const std::string base = text_of(node, "extends"); !base.empty()) heirs.emplace_back(name, base);
      const Node& keys = *node.find("keys");
      Table table{name, text_of(node, "tool"), text_of(node, "source"), words_of(keys, keys),
                  texts_of(node, "nothing")};
      found->emplace(std::move(name), std::move(table));
    }
    for (const auto& [heir, base] : heirs)
      found->at(heir).words = extended(found->at(base).words, found->at(heir).words);
    return found;
  }();
  return *all;
}

}  // namespace

const Table& table_of(std::string_view name) {
  const auto at = tables().find(name);
  RUNNER_ASSERT(at != tables().end(), "callers name files of schemas/words");
  return at->second;
}

const Outcome* listed(const Word& word, std::string_view text) {
  const std::string lower = core::lower(text);
  const auto find = [&word](std::string_view name) -> const Outcome* {
    const auto at = std::find_if(word.values.begin(), word.values.end(),
                                 [&](const auto& value) { return core::lower(value.first) == name; });
    return at != word.values.end() ? &at->second : nullptr;
  };
  const Outcome* found = find(lower);
  return found == nullptr && lower == "false" ? find("no") : found;  // what YAML 1.1 makes of a bare `no`
}

const Word* find(const std::vector<Word>& words, std::string_view key) {
  auto at = std::find_if(words.begin(), words.end(), [&](const Word& word) { return word.key == key; });
  if (at == words.end()) {
    at = std::find_if(words.begin(), words.end(), [&](const Word& word) {
      return word.key.ends_with('*') && key.starts_with(std::string_view(word.key).substr(0, word.key.size() - 1));
    });
  }
  return at != words.end() ? &*at : nullptr;
}

}  // namespace runner::words

#include "runner/words/table.h"

#include <algorithm>
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
  outcome.is_fatal = outcome.kind == Outcome::Kind::kRefused ||
                     (outcome.kind == Outcome::Kind::kPlanned && node.find("meanwhile") == nullptr);
  return outcome;
}

std::vector<Word> words_of(const Node& keys);

Word word_of(const Node::Entry& entry, const Node& keys) {
  const Node& node = entry.value;
  Word word{.key = entry.key,
            .path = text_of(node, "path"),
            .rule = text_of(node, "rule"),
            .needs = text_of(node, "needs"),
            .outcome = outcome_of(node)};
  const std::string as = text_of(node, "as");
  if (as == "interval") word.as = Word::As::kInterval;
  if (as == "per_epoch") word.as = Word::As::kPerEpoch;
  if (const Node* fallback = node.find("default")) word.fallback = *fallback;
  if (const Node* nothing = node.find("nothing")) {
    for (const Node& value : nothing->items()) word.nothing.push_back(value.scalar_text());
  }
  if (const Node* values = node.find("values")) {
    for (const Node::Entry& value : values->entries())
      word.values.emplace_back(core::lower(value.key), outcome_of(value.value));
  }
  if (const Node* other = node.find("other")) word.other = other->is_mapping() ? outcome_of(*other) : Outcome{};
  if (const Node* inner = node.find("keys")) {
    word.inner = words_of(inner->is_string() ? *keys.find(inner->as_string())->find("keys") : *inner);
  }
  return word;
}

std::vector<Word> words_of(const Node& keys) {
  std::vector<Word> words;
  for (const Node::Entry& entry : keys.entries()) words.push_back(word_of(entry, keys));
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
      Table table{name, text_of(node, "tool"), text_of(node, "source"), words_of(*node.find("keys"))};
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

const Word* find(const std::vector<Word>& words, std::string_view key) {
  const auto at = std::find_if(words.begin(), words.end(), [&](const Word& word) { return word.key == key; });
  return at != words.end() ? &*at : nullptr;
}

}  // namespace runner::words

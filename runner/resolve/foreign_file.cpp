#include "runner/resolve/foreign_file.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "runner/words/table.h"

namespace runner::resolve {
namespace {

using core::Node;

/// What `roux config import` reads. Of tables that know as many keys the first counts, so a table stands before those
/// that extend it.
constexpr const char* kTables[] = {"axolotl",          "trainer",    "trl",      "llama_factory",
                                   "llama_factory_v1", "accelerate", "deepspeed"};

/// A single word is a slip.
constexpr std::size_t kWordsMin = 2;
/// A recipe may say learning_rate and its like beside its own keys, and an override sets one of a recipe's.
constexpr std::size_t kWordsPerOwnKey = 4;

/// The words of a table that no recipe has, and the keys of a recipe that the table does not have.
struct Counts {
  std::size_t words = 0, own = 0;
  const Node::Entry* first = nullptr;  ///< of the words, in a file if one is
};

bool is_in_file(const Node::Entry& entry) {
  const auto& source = entry.key_location.source;
  return source != nullptr && source->kind == core::Source::Kind::kFile;
}

Counts count(const Node& composed, const words::Table& table, const registry::Fragment& recipe) {
  Counts counts;
  for (const Node::Entry& entry : composed.entries()) {
    const bool is_word = words::find(table.words, entry.key) != nullptr, is_own = recipe.find(entry.key) != nullptr;
    if (is_own && !is_word) ++counts.own;
    if (is_own || !is_word) continue;
    ++counts.words;
    if (counts.first == nullptr || (!is_in_file(*counts.first) && is_in_file(entry))) counts.first = &entry;
  }
  return counts;
}

}  // namespace

bool refuse_foreign_file(const Node& composed, const registry::Registry& registry, core::Diagnostics& diagnostics) {
  const registry::Fragment* recipe = registry.find("section", "recipe");
  if (!composed.is_mapping() || recipe == nullptr) return false;
  const words::Table* tool = nullptr;
  Counts most;
  for (const char* name : kTables) {
    const words::Table& table = words::table_of(name);
    const Counts counts = count(composed, table, *recipe);
    if (counts.words < kWordsMin || counts.words <= kWordsPerOwnKey * counts.own || counts.words <= most.words)
      continue;
    tool = &table;
    most = counts;
  }
  if (tool == nullptr) return false;
  const std::string file = is_in_file(*most.first) ? most.first->key_location.source->name : "FILE";
  diagnostics.error(most.first->key_location, "this is a configuration of " + tool->tool + ", not a recipe",
                    "`roux config import " + file + " -o recipe.yaml` converts it");
  return true;
}

}  // namespace runner::resolve

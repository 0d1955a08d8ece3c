#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "runner/registry/registry.h"
#include "runner/resolve/sharding/settings.h"
#include "runner/resolve/sharding/words.h"
#include "runner/words/table.h"

namespace runner::resolve {

/// A truth value, which Accelerate also writes as text; nothing for another value.
std::optional<bool> flag_of(const core::Node& value);
/// A number, which may be written as text.
std::optional<double> number_of(const core::Node& value);
/// A value as roux writes it: a whole number where it is one.
core::Node number_node(double number, const core::Location& location);
/// A copied value; a number that is written as text is one, and so is the whole 1e4 of JSON.
core::Node as_written(const core::Node& value);

/// Words of one framework on their way into a recipe. An entry of its table without a rule is placed by sort(); what
/// read() finds is the framework's own to place.
class SettingWords {
 public:
  SettingWords(const words::Table& table, const std::vector<ShardingWord>& words, core::Node& recipe,
               const ShardingOptions& options, const registry::Registry& registry, core::Diagnostics& diagnostics);

 protected:
  /// Takes all words, and each key of their sections, as the table says.
  void sort();
  /// A word that has a rule; null where there is none.
  const ShardingWord* read(const std::string& name) const;
  /// What the table says of a value of `field`, by its name, whatever stands before a dot in that
  /// (`StateDictType.FULL_STATE_DICT`), or by its number. Null where it is not listed.
  const words::Outcome* listed(const std::string& field, const core::Node& value) const;
  /// The values that the table lists for `field`.
  std::vector<std::string> names_of(const std::string& field) const;
  /// What the recipe says at a path; nothing for null and `auto`.
  std::optional<core::Node::Entry> written_at(const std::string& section, const std::string& key) const;
  /// False after an error.
  bool place(const ShardingWord& word, const std::string& path, core::Node value);
  void place_shard(const ShardingWord& word, const char* shard);
  /// Whether anything is sharded, and whether parameters are.
  bool shards() const;
  bool gathers_parameters() const;
  /// Whether all of the model is gathered at once.
  bool gathers_model() const;
  /// Whether `parallelism` says `false` there.
  bool is_off(const std::string& key) const;
  const ShardingWord& keep(const ShardingWord& word);
  /// tell() says that the word has no effect, unless it asks for nothing.
  void leave(const ShardingWord& word);
  void missing(const ShardingWord& word, const std::string& why, const std::string& hint, bool is_fatal = false);
  void must_be(const ShardingWord& word, const std::string& what, core::Hint hint = {});
  /// The same of one of names_of(field), with `before` before them and the nearest as a hint.
  void must_be_named(const ShardingWord& word, const std::string& field, const std::string& before = "");
  /// Notices of what the words are read as, and of those without an effect.
  void tell();

  const std::vector<ShardingWord>& words_;
  core::Node& recipe_;
  core::Diagnostics& diagnostics_;

 private:
  const words::Word* entry_of(const std::string& field) const;
  void sort(const ShardingWord& word, const std::vector<words::Word>& level, const words::Word* section);
  void take(const ShardingWord& word, const words::Word& entry);
  void unknown(const ShardingWord& word, const std::vector<words::Word>& level);
  void note(const std::string& path, const core::Node& value);

  const words::Table& table_;
  const ShardingOptions& options_;
  const registry::Registry& registry_;
  std::vector<std::unique_ptr<ShardingWord>> kept_;
  std::map<std::string, const ShardingWord*, std::less<>> found_;
  std::vector<ShardingWord> idle_;
  std::vector<std::string> read_as_;
  std::map<std::string, std::string> origins_;  // path -> which word has set it
};

}  // namespace runner::resolve

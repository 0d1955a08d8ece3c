#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "runner/registry/registry.h"
#include "runner/resolve/sharding/fields.h"
#include "runner/resolve/sharding/settings.h"
#include "runner/resolve/sharding/words.h"

namespace runner::resolve {

/// A truth value, which Accelerate also writes as text; nothing for another value.
std::optional<bool> flag_of(const core::Node& value);
/// A number, which may be written as text.
std::optional<double> number_of(const core::Node& value);
/// A value as roux writes it: a whole number where it is one.
core::Node number_node(double number, const core::Location& location);
/// A copied value; a number that is written as text is one, and so is the whole 1e4 of JSON.
core::Node as_written(const core::Node& value);

/// Words of one framework on their way into a recipe.
class SettingWords {
 public:
  SettingWords(const std::vector<ShardingWord>& words, core::Node& recipe, const ShardingOptions& options,
               const registry::Registry& registry, core::Diagnostics& diagnostics);

 protected:
  using Tables = std::span<const std::span<const ShardingField>>;

  /// Takes a word, or each key of a section, as its row of the tables says.
  void sort(const ShardingWord& word, Tables tables, const char* framework);
  /// A word of a row that is read; null where there is none.
  const ShardingWord* read(const std::string& name) const;
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
  void missing(const ShardingWord& word, const std::string& hint);
  void must_be(const ShardingWord& word, const std::string& what, core::Hint hint = {});
  /// Notices of what the words are read as, and of those without an effect.
  void tell(const char* framework);

  const std::vector<ShardingWord>& words_;
  core::Node& recipe_;
  core::Diagnostics& diagnostics_;

 private:
  void take(const ShardingWord& word, const ShardingField& field);
  void unknown(const ShardingWord& word, const std::vector<std::string>& names, const char* framework, bool is_section);
  void note(const std::string& path, const core::Node& value);

  const ShardingOptions& options_;
  const registry::Registry& registry_;
  std::vector<std::unique_ptr<ShardingWord>> kept_;
  std::map<std::string, const ShardingWord*, std::less<>> found_;
  std::vector<ShardingWord> idle_;
  std::vector<std::string> read_as_;
  std::map<std::string, std::string> origins_;  // path -> which word has set it
};

}  // namespace runner::resolve

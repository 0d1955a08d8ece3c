#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "runner/words/draft.h"
#include "runner/words/table.h"

namespace runner::words {

/// What became of a key that was written.
struct Row {
  Outcome::Kind kind = Outcome::Kind::kTaken;
  std::string key;  ///< `datasets[0].split` within blocks
  std::string value;
  std::string text;  ///< the path of the recipe, or why not
  core::Location location;
  std::vector<core::Location> places = {};  ///< of its value and all that is in it
  bool asks = true;                         ///< else it asks for nothing, and is counted alone
};

/// Reads a configuration of another program by its table into a recipe.
///
/// Every key gets a row. Errors: a key that the table does not have, and what it refuses, with
/// the remedy; warnings: what is planned and can be left out.
class Reader {
 public:
  /// Reads keys that one entry of the table cannot say. Called once, at the first of the words that name it, whether
  /// the configuration has it or not.
  using Rule = std::function<void(Reader&)>;

  /// The arguments have to outlive it. `facts` of the whole configuration stand for keys of these names in the
  /// conditions of entries.
  Reader(const Table& table, const core::Node& config, const std::map<std::string, Rule>& rules,
         core::Diagnostics& diagnostics, std::map<std::string, std::string> facts = {});

  /// Reads the whole configuration into draft().
  void read();
  /// In the order of the configuration.
  std::vector<Row> rows() const;

  // For rules:

  Draft& draft() { return draft_; }
  core::Diagnostics& diagnostics() { return diagnostics_; }
  const core::Node& config() const { return config_; }
  /// Null where it is not there or asks for nothing. `dist_config.name`: within a block.
  const core::Node* get(std::string_view key) const;
  /// Reads the keys of a block within the configuration, `prefix` before them; those of rules are the caller's. Sets
  /// what the tool does where the block does not say.
  void read_block(const core::Node& block, const std::vector<Word>& words, const std::string& prefix, Draft& draft);
  /// What the table says of a value. Silent.
  Outcome outcome_of(const Word& word, const core::Node& value) const;
  /// An error; the row of the key says that it is refused.
  void refuse(const core::Node& at, const std::string& key, const std::string& message, const std::string& hint);
  /// What else the row of a key says; one that asks for nothing has no effect anyway.
  void note(const std::string& key, Outcome::Kind kind, const std::string& text);

 private:
  bool asks(const core::Node& value) const;
  /// Why a word says nothing beside the other keys of its block; "" where it counts.
  std::string idle(const Word& word, const Outcome& outcome, const core::Node& block) const;
  void put_fallbacks(const core::Node& block, const std::vector<Word>& words, Draft& draft, bool computed) const;
  void judge(const core::Node::Entry& entry, const Word& word, const core::Node& block, const std::string& prefix,
             Draft& draft);
  void judge_value(const core::Node::Entry& entry, const Word& word, const core::Node& block, const std::string& prefix,
                   Draft& draft);
  void add_row(const core::Node::Entry& entry, Outcome::Kind kind, const std::string& key, const std::string& text);
  void tell(const core::Node::Entry& entry, const Outcome& outcome, const std::string& key, const Word& word);
  void unknown(const core::Node::Entry& entry, const std::vector<Word>& words, const std::string& prefix);

  const Table& table_;
  const core::Node& config_;
  const std::map<std::string, Rule>& rules_;
  core::Diagnostics& diagnostics_;
  std::map<std::string, core::Node> facts_;
  Draft draft_;
  std::vector<Row> rows_;
};

/// A key of whose place there is an error is refused, whoever reported it.
void refuse_where_wrong(std::vector<Row>& rows, const core::Diagnostics& diagnostics);

/// The rows as a text of at most `width` columns: counts, then each kind with its keys, but those that ask for nothing.
/// Keys without effect that have the same reason share a row.
std::string table_text(const std::vector<Row>& rows, std::size_t width);

}  // namespace runner::words

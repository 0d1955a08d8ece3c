#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runner/core/node.h"
#include "runner/core/platform/line_source.h"

namespace components::data {

/// Whether the name ends in `.conll`, `.conllu`, `.bio` or `.iob`, behind it `.gz` or `.zst` or neither.
bool is_conll_path(const std::string& path);
/// Whether the first line that is not blank is neither JSON nor a single word.
bool has_columns(const std::string& path);

/// The sentences of a file in columns, a word with its tags in each line and an empty line behind each sentence, one
/// after the other as JSON objects {tokens: [...], tags: [...]}: the first column, and the last. Those between them are
/// `column2`, `column3` and so on; of four, as in CoNLL-2003, they are `pos_tags` and `chunk_tags`, and the last is
/// `ner_tags`. Of CoNLL-U, ten columns of which the first is a number, `tokens`, `lemmas`, `upos`, `xpos` and
/// `deprels`, without ranges and empty nodes. Columns are apart by tabs where a line has one, else by blanks. Left out:
/// a document's `-DOCSTART-`, and in front of a sentence lines that begin with `# ` and are no word of its columns.
/// RunError names file and line of what cannot be read: a line with another number of columns than the first, a
/// sentence of more than LineSource::kLineMax bytes, no UTF-8.
class ConllRows {
 public:
  using Place = runner::core::LineSource::Place;

  /// A place is behind a sentence.
  ConllRows(const std::string& path, const Place& start);

  /// The next sentence, until the next call; nothing at the end of the file.
  std::optional<std::string_view> next();
  std::int64_t number() const { return number_; }  ///< the line in which it begins, from 1
  Place end() const { return source_.end(); }      ///< of that sentence

 private:
  bool take_as_columns(std::string_view line, const runner::core::LineSource& from);
  void add(runner::core::Node& record) const;
  void check(const runner::core::LineSource& source) const;
  [[noreturn]] void fail(std::int64_t line, const std::string& what) const;

  std::string path_, record_;
  runner::core::LineSource source_;
  std::vector<std::string_view> columns_;  // of the line at hand
  std::vector<std::string> names_;
  std::int64_t number_ = 0;
};

}  // namespace components::data

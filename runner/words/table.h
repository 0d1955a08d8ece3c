#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runner/core/node.h"

namespace runner::words {

/// What becomes of a key of another program, or of one of its values.
struct Outcome {
  enum class Kind {
    kTaken,    ///< roux does the same
    kChanged,  ///< roux does what `text` says, which differs a little
    kNoEffect,
    kPlanned,  ///< not yet: a warning with `instead` where training can do without it, else an error
    kRefused,
  };
  Kind kind = Kind::kTaken;
  std::optional<core::Node> value = {};  ///< what the recipe says; nothing: the value as it is written
  std::string text = {};                 ///< why, or what differs
  std::string instead = {};              ///< what to do
  bool is_fatal = false;                 ///< the import fails
  core::Node also = {};                  ///< further keys of the recipe: path -> value
};

struct Word {
  enum class As {
    kSame,
    kInterval,  ///< steps, or a fraction of the whole training below 1
    kPerEpoch,  ///< the number of times in an epoch
  };
  std::string key;
  std::string path;   ///< of the recipe: `optimizer.lr`, `adapters[lora].r`; of a rule, for readers only
  std::string rule;   ///< the function that reads it; "" for none
  std::string needs;  ///< without this key it has no effect
  As as = As::kSame;
  Outcome outcome = {};                                      ///< whatever its value, when `values` is empty
  std::vector<std::pair<std::string, Outcome>> values = {};  ///< by the value's text in lower case, or its JSON
  std::optional<Outcome> other = {};                         ///< of a value that `values` lacks; nothing: an error
  std::optional<core::Node> fallback = {};                   ///< what the tool does where the key is not there
  std::vector<std::string> nothing = {};                     ///< values that ask for nothing, as texts
  std::vector<Word> inner = {};                              ///< keys of the mapping, or of each mapping of the list
};

/// What the keys of a tool's configuration come to: schemas/words/NAME.json.
///
///   {"name": "axolotl", "tool": "Axolotl", "source": "OWNER/NAME COMMIT", "keys": {
///     "lora_r": {"path": "adapters[lora].r", "needs": "adapter"},
///     "lr_scheduler": {"path": "lr_scheduler.type", "default": "cosine", "values": {"linear": "linear"}},
///     "flash_attention": {"no_effect": "kernels for the same arithmetic"},
///     "relora": {"refused": "weights are not merged", "instead": "remove it"},
///     "datasets": {"rule": "data", "path": "data.train", "keys": {...}}}}
///
/// `to` and `changed`, `no_effect`, `refused` and `instead`, `planned` and `instead` (an error) or `meanwhile` (a
/// warning) say what becomes of a key or a value; a value that is no mapping is what the recipe says. `other` is for
/// the values that are not listed ("copy": as they are), `also` sets further keys, `as` is `interval` or `per_epoch`.
/// `keys` are those of the mapping; the name of another key stands for that one's. `"extends": NAME` at the top takes
/// the entries of another table, which the table's own replace; that one extends none.
struct Table {
  std::string name, tool, source;
  std::vector<Word> words;
};

/// A tool's table, by the name of its file. Assumes that there is one.
const Table& table_of(std::string_view name);
/// Null for a key that is not in the list.
const Word* find(const std::vector<Word>& words, std::string_view key);

}  // namespace runner::words

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runner/core/node.h"

namespace runner::words {

/// How a key of another program, or one of its values, is said in a recipe.
struct Outcome {
  enum class Kind {
    kTaken,    ///< roux does the same
    kChanged,  ///< roux does what `text` says, which differs a little
    kNoEffect,
    kPlanned,  ///< not yet
    kRefused,
  };
  Kind kind = Kind::kTaken;
  std::optional<core::Node> value = {};  ///< what the recipe says; nothing: the value as it is written
  std::string text = {};                 ///< why, or what differs
  std::string instead = {};              ///< what to do
  std::vector<std::string> unless = {};  ///< beside one of these keys it has no effect
  bool is_fatal = false;                 ///< the import fails; else what is planned or refused is a warning
  core::Node also = {};                  ///< further keys of the recipe: path -> value
};

struct Word {
  enum class As {
    kSame,
    kInterval,  ///< steps, or a fraction of the whole training below 1
    kPerEpoch,  ///< the number of times in an epoch
    kNumber,    ///< a whole number, which may be written as text
    kEpochs,    ///< a number of epochs
    kList,      ///< a list, which may be written as one text with commas
    kModel,     ///< a folder that is here, or OWNER/NAME as a name of the Hub
  };
  std::string key;    ///< `fsdp_*`: all that begin so and have no word of their own
  std::string path;   ///< of the recipe: `optimizer.lr`, `adapters[lora].r`; of a rule, for readers only
  std::string rule;   ///< the function that reads it; "" for none
  std::string needs;  ///< without this key it has no effect
  std::vector<std::pair<std::string, std::vector<std::string>>> when = {};  ///< it counts beside these values alone
  std::string note;  ///< what pages say of it, where path and values do not
  As as = As::kSame;
  Outcome outcome = {};                                      ///< whatever its value, when `values` is empty
  std::vector<std::pair<std::string, Outcome>> values = {};  ///< by the value's text in any case, or its JSON
  std::optional<Outcome> other = {};                         ///< of a value that `values` lacks; nothing: an error
  std::optional<core::Node> fallback = {};                   ///< what the tool does where the key is not there
  std::string fallback_of = {};                              ///< ... times the value at this path of the recipe
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
/// `to` and `changed`, `no_effect`, `refused` or `planned` with `instead` (an error) or `meanwhile` (a warning) say
/// how a key or a value is said; a value that is no mapping is what the recipe says. `other` is for the values that
/// are not listed ("copy": as they are), `also` sets further keys, `as` is `interval`, `per_epoch`, `epochs`, `number`,
/// `list` or `model`. A text in place of an entry is the path of another one that it is the same as: `"ipex":
/// "ipex_config.ipex"`. `nothing` at the top are the texts that ask for nothing whatever the key. `keys` are those of
/// the mapping; the name of another key stands for that one's, with paths within its own. `"extends": NAME` at the top
/// takes the entries of another table, which the table's own replace; that one extends none.
///
/// `needs`, `unless` and `"when": {KEY: VALUE or [VALUES]}`, in lower case, say beside which keys an entry counts:
/// those of its own block first, then of the top (`dist_config.name`); KEY may also be a fact that the reader is given,
/// such as the loss of a command. A `default` is written where a block is there, its key is not, and it would count;
/// `{"of": PATH, "times": NUMBER}` is computed from another key of the recipe. A key that is not there is its default.
struct Table {
  std::string name, tool, source;
  std::vector<Word> words;
  std::vector<std::string> nothing = {};  ///< values that ask for nothing, in lower case
};

/// A tool's table, by the name of its file. Assumes that there is one.
const Table& table_of(std::string_view name);
/// What the word says of a value with that text; null where it is not listed.
const Outcome* listed(const Word& word, std::string_view text);
/// The word of that key, else one of all that begin so; null for none.
const Word* find(const std::vector<Word>& words, std::string_view key);

}  // namespace runner::words

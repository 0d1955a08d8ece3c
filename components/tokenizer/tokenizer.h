#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "components/tokenizer/text/growth.h"
#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "runner/core/result.h"

namespace components::tokenizer {

/// Where a token comes from: characters (code points) [begin, end) of the text, as the `tokenizers` library has it.
struct Offsets {
  std::uint32_t begin = 0, end = 0;
  bool operator==(const Offsets&) const = default;
};

/// Which of two texts a token is of; kAdded: of neither.
enum class Origin : std::uint8_t { kAdded, kFirst, kSecond };

struct Encoding {
  std::vector<std::int32_t> ids;
  std::vector<Offsets> offsets;  ///< one for each of `ids` when asked for; 0, 0 of a special token that was added
  /// Of a pair, one for each of `ids`: what models call token types. Empty for a text alone.
  std::vector<std::int32_t> type_ids;
  /// Of a pair, one for each of `ids`: the text that the token is of, whose characters `offsets` counts.
  std::vector<Origin> origins;
};

struct EncodeOptions {
  bool add_special_tokens = true;  ///< those that the model expects around a text
  bool only_missing = false;       ///< of those, not what the text itself begins or ends with
  bool with_offsets = false;
  /// Offsets as the `tokenizers` library has them: without blanks at the ends of a token where the file asks for it,
  /// and of the bytes of one character for one of them alone. False: the characters that a token is made of, one at
  /// least.
  bool trim_offsets = true;
};

enum class Side { kLeft, kRight };

/// Which text of a pair loses tokens when both are too long.
enum class Shortened {
  kLongest,  ///< the longer one until both have the same length, then both
  kFirst,
  kSecond,
};

/// What a text or a pair is cut to.
struct Truncation {
  std::size_t max_length = 0;                 ///< tokens of all, those that are added included
  Shortened shortened = Shortened::kLongest;  ///< of a pair
  Side side = Side::kRight;                   ///< where the tokens go
};

/// What a folder says of a tokenizer beside its vocabulary (tokenizer_config.json, special_tokens_map.json).
struct Settings {
  Side padding_side = Side::kRight;
  Side truncation_side = Side::kRight;
  std::optional<bool> add_bos_token, add_eos_token;
  bool clean_up_tokenization_spaces = false;     ///< Transformers' decode() does; decode() below does not
  std::optional<std::int64_t> model_max_length;  ///< tokens; nothing when the model has no limit
  std::string tokenizer_class;                   ///< of Transformers; may be empty
  bool add_special_tokens = true;                ///< a recipe's choice: to texts that are not conversations
};

/// What a recipe says in place of the files.
struct Choices {
  bool add_special_tokens = true;
  Side padding_side = Side::kRight;
  std::optional<Side> truncation_side;  ///< nothing: as the files say
  std::optional<std::int32_t> pad;
};

/// Tokens with a meaning of their own.
struct SpecialTokens {
  std::optional<std::int32_t> bos, eos, pad, unk, mask;
};

/// A token that is found in the text before anything else.
struct AddedToken {
  std::int32_t id = 0;
  std::string content;
  bool single_word = false;  ///< not inside a word
  bool lstrip = false;       ///< takes the white space before it
  bool rstrip = false;       ///< takes the white space behind it
  bool normalized = true;    ///< is looked for in the normalized text
  bool special = false;      ///< is left out of decoded text when asked for
};

/// What a tokenizer is made of, for people.
struct Description {
  std::string path;    ///< the file that was read
  std::string format;  ///< `tokenizer.json`, `vocab.json with merges.txt`, `SentencePiece`, `vocab.txt`
  std::string model;   ///< `BPE`, `WordPiece`, `Unigram`
  /// `normalizer`, `NFC`; `pre_tokenizer`, `Split, ByteLevel`; what there is, in the order in which it is applied.
  std::vector<std::pair<std::string, std::string>> parts;
};

/// Texts to numbers and back. It does not change once it is shared: every const function may be called from several
/// threads.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// `truncation`: of the text's own tokens, so that those which are added stay; nothing leaves it whole.
  /// Failure: the text is not UTF-8 (the message says at which byte), longer than kTextMax, a pattern takes too long on
  /// it, a stage makes too much of it (text/growth.h), or more tokens are added than it may have.
  virtual runner::core::Result<Encoding> encode(std::string_view text, const EncodeOptions& options = {},
                                                const std::optional<Truncation>& truncation = {}) const = 0;

  /// Two texts as one, as the post-processor joins them. `truncation`: nothing leaves both whole. `only_missing` counts
  /// for a text alone.
  /// Failure: those of encode(), the tokenizer does not say how to join them, or the text that loses tokens has too
  /// few.
  virtual runner::core::Result<Encoding> encode_pair(std::string_view text, std::string_view pair,
                                                     const EncodeOptions& options = {},
                                                     const std::optional<Truncation>& truncation = {}) const = 0;

  /// The same of several texts, on up to `threads` threads. The message of a failure names the text by its index.
  runner::core::Result<std::vector<Encoding>> encode_batch(std::span<const std::string> texts,
                                                           const EncodeOptions& options, std::size_t threads) const;

  /// Ids that no token has are left out, as the libraries leave them out. `skip_special_tokens`: so are special ones.
  /// Failure: the decoder makes too much of them, or a pattern takes too long.
  virtual runner::core::Result<std::string> decode(std::span<const std::int32_t> ids,
                                                   bool skip_special_tokens = false) const = 0;

  /// Tokens, added ones included.
  virtual std::int64_t vocab_size() const = 0;
  /// The largest id and one: rows that an embedding needs at least. More than vocab_size() when ids have holes.
  virtual std::int32_t id_limit() const = 0;
  /// As the vocabulary writes it (`Ġworld`); nothing for an id that no token has.
  virtual std::optional<std::string> token_of(std::int32_t id) const = 0;
  virtual std::optional<std::int32_t> id_of(std::string_view token) const = 0;
  virtual bool is_special(std::int32_t id) const = 0;
  virtual const std::vector<AddedToken>& added_tokens() const = 0;

  const SpecialTokens& special() const { return special_; }
  /// What fills up a batch: the padding token, else the end token, whose places have to be masked; nothing without
  /// both.
  std::optional<std::int32_t> fill_id() const { return special_.pad ? special_.pad : special_.eos; }
  const Settings& settings() const { return settings_; }
  /// For a text that is no conversation: what the model expects around it, once, unless the recipe wants none.
  EncodeOptions for_text() const { return {.add_special_tokens = settings_.add_special_tokens, .only_missing = true}; }
  /// Before anyone else has it.
  void choose(const Choices& choices);
  const Description& description() const { return description_; }

  static constexpr std::size_t kTextMax = Growth::kMax;  ///< bytes

 protected:
  SpecialTokens special_;
  Settings settings_;
  Description description_;
};

/// Reads a tokenizer: a folder of Transformers, a `tokenizer.json`, a `vocab.json` with `merges.txt` beside it, a
/// SentencePiece model (`tokenizer.model`, `*.model`), or the `vocab.txt` of a BERT. Of a folder the first of these
/// that is there counts, and its `tokenizer_config.json`, `special_tokens_map.json` and `generation_config.json` say
/// the rest; they also do so beside a file that is named. Failure names file and field: nothing is there, a file is
/// damaged, or asks for what roux does not know.
runner::core::Result<std::shared_ptr<Tokenizer>> read_tokenizer(const std::string& path);

struct Inputs {
  const runner::core::Node& block;  ///< for locations in messages
  runner::core::Diagnostics& diagnostics;
};

/// Null when `diagnostics` got an error.
std::shared_ptr<const Tokenizer> build(const runner::core::Node& block, const Inputs& inputs);

}  // namespace components::tokenizer

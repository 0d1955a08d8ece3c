#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "components/tokenizer/added_tokens.h"
#include "components/tokenizer/decoder.h"
#include "components/tokenizer/model/model.h"
#include "components/tokenizer/normalizer.h"
#include "components/tokenizer/post_processor.h"
#include "components/tokenizer/pre_tokenizer.h"
#include "components/tokenizer/settings.h"
#include "components/tokenizer/text/pool.h"
#include "components/tokenizer/tokenizer.h"
#include "components/tokenizer/tokenizer_file.h"

namespace components::tokenizer {

/// The parts of a tokenizer, each null when there is none but the model.
struct Parts {
  std::unique_ptr<Normalizer> normalizer;
  PreTokenizers pre_tokenizers;
  std::unique_ptr<Model> model;
  std::unique_ptr<PostProcessor> post_processor;
  std::unique_ptr<Decoder> decoder;
  std::vector<AddedToken> added;
};

/// A tokenizer that works as the `tokenizers` library does: normalizer, pre-tokenizer, model, post-processor.
class Pipeline final : public Tokenizer {
 public:
  /// Throws RunError: an added token has another id than the library would give it.
  Pipeline(Parts parts, const FolderSettings& settings, Description description);

  runner::core::Result<Encoding> encode(std::string_view text, const EncodeOptions& options,
                                        const std::optional<Truncation>& truncation) const override;
  runner::core::Result<Encoding> encode_pair(std::string_view text, std::string_view pair, const EncodeOptions& options,
                                             const std::optional<Truncation>& truncation) const override;
  runner::core::Result<std::string> decode(std::span<const std::int32_t> ids, bool skip_special_tokens) const override;
  std::int64_t vocab_size() const override { return vocab_size_; }
  std::int32_t id_limit() const override { return id_limit_; }
  std::optional<std::string> token_of(std::int32_t id) const override;
  std::optional<std::int32_t> id_of(std::string_view token) const override;
  bool is_special(std::int32_t id) const override;
  const std::vector<AddedToken>& added_tokens() const override { return added_.all(); }

 private:
  /// What model and post-processor see of a text. RunError when it is not one that can be encoded.
  Encoded tokenize(std::string_view text, const EncodeOptions& options) const;
  Encoding encode_text(std::string_view text, const EncodeOptions& options,
                       const std::optional<Truncation>& truncation) const;
  Encoding join(std::string_view text, std::string_view pair, const EncodeOptions& options,
                const std::optional<Truncation>& truncation) const;
  std::string decode_ids(std::span<const std::int32_t> ids, bool skip_special_tokens) const;
  void add_offsets(const Pieces& pieces, const Piece& piece, const Tokens& tokens, std::size_t first,
                   std::vector<Source>& sources) const;
  /// The same with the characters that each token is made of, also where others are left out.
  void add_places(const Pieces& pieces, const Piece& piece, const Tokens& tokens, std::size_t first,
                  std::vector<Source>& sources) const;
  /// The same of a piece with bytes that the vocabulary lacks and leaves out: the library counts what is left from the
  /// beginning of the piece, in bytes of what the vocabulary writes.
  void add_shifted_offsets(const Pieces& pieces, const Piece& piece, const Tokens& tokens, std::size_t first,
                           std::vector<Source>& sources) const;

  Parts parts_;
  AddedTokens added_;
  std::int64_t vocab_size_ = 0;
  std::int32_t id_limit_ = 0;
  mutable Pool<Scratch> scratch_;
};

/// From what was read of a tokenizer.json. Throws RunError that names file and field.
std::shared_ptr<Tokenizer> make_pipeline(TokenizerFile file, const FolderSettings& settings, Description description);

/// A byte-level BPE as GPT-2's: from vocab.json and merges.txt.
std::shared_ptr<Tokenizer> make_byte_level_pipeline(Vocabulary vocabulary,
                                                    std::vector<std::pair<std::string, std::string>> merges,
                                                    const FolderSettings& settings, Description description);

/// A WordPiece as Transformers' BertTokenizer makes it of a vocab.txt.
std::shared_ptr<Tokenizer> make_bert_pipeline(Vocabulary vocabulary, FolderSettings settings, Description description);

/// Fills in the special tokens that a folder names. Throws RunError for one that the vocabulary lacks.
SpecialTokens find_special_tokens(const Tokenizer& tokenizer, const FolderSettings& settings);

}  // namespace components::tokenizer

#include "components/tokenizer/pipeline.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "components/tokenizer/text/byte_chars.h"
#include "components/tokenizer/text/unicode.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"

namespace components::tokenizer {
namespace {

using runner::core::RunError;

bool is_ascii(std::string_view text) {
  std::uint64_t any = 0;
  std::size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + at, 8);
    any |= word;
  }
  for (; at < text.size(); ++at) any |= static_cast<unsigned char>(text[at]);
  return (any & 0x8080808080808080u) == 0;
}

/// Bytes of the text to characters, as the library converts them: an end inside a character counts as its beginning,
/// and what begins at the end of the text stays as it is.
class ToCharacters {
 public:
  explicit ToCharacters(std::string_view text) : size_(text.size()) {
    if (is_ascii(text)) return;
    chars_.resize(text.size());
    std::uint32_t count = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (i > 0 && (static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) ++count;
      chars_[i] = count;
    }
  }
  Offsets of(Source bytes) const {
    if (chars_.empty() || bytes.begin >= size_) return {bytes.begin, bytes.end};
    if (bytes.end < size_) return {chars_[bytes.begin], chars_[bytes.end]};
    const std::uint32_t last = bytes.end - 1 < size_ ? chars_[bytes.end - 1] : chars_[bytes.begin] + 1;
    return {chars_[bytes.begin], last + 1};
  }

 private:
  std::size_t size_;
  std::vector<std::uint32_t> chars_;  // empty when all are ASCII
};

void check_added(const std::vector<AddedToken>& added, const Vocabulary& vocabulary, const std::string& file) {
  const auto size = static_cast<std::int64_t>(vocabulary.size());
  std::int64_t largest = -1;
  for (std::size_t i = 0; i < added.size(); ++i) {
    const AddedToken& token = added[i];
    const auto place = [&] { return file + ": added_tokens[" + std::to_string(i) + "].id"; };
    // The library does not look at the id of the file: it numbers those on that the vocabulary lacks.
    const auto known = vocabulary.id_of(token.content);
    const std::int64_t id = known ? *known : std::max(size, largest + 1);
    if (token.id != id) {
      throw RunError(place() + " is " + std::to_string(token.id) + ", but the token " +
                     runner::core::quote(token.content) + " has the id " + std::to_string(id) +
                     (known ? " in model.vocab" : ", the first that is free"));
    }
    if (!known && vocabulary.token_of(token.id)) {
      throw RunError(place() + " is " + std::to_string(id) + ", which another token of model.vocab has");
    }
    largest = std::max(largest, id);
  }
}

}  // namespace

Pipeline::Pipeline(Parts parts, const FolderSettings& settings, Description description)
    : parts_(std::move(parts)),
      added_(std::move(parts_.added), parts_.normalizer.get(), settings.split_special_tokens, description.path) {
  const Vocabulary& vocabulary = parts_.model->vocabulary();
  check_added(added_.all(), vocabulary, description.path);
  vocab_size_ = static_cast<std::int64_t>(vocabulary.size());
  id_limit_ = vocabulary.id_limit();
  for (const AddedToken& token : added_.all()) {
    if (token.id >= id_limit_ || !vocabulary.token_of(token.id)) ++vocab_size_;
    id_limit_ = std::max(id_limit_, token.id + 1);
  }
  settings_ = settings.settings;
  description_ = std::move(description);
  special_ = find_special_tokens(*this, settings);
  if (!special_.unk && parts_.model->unknown() >= 0) special_.unk = parts_.model->unknown();
}

runner::core::Result<Encoding> Pipeline::encode(std::string_view text, const EncodeOptions& options,
                                                const std::optional<Truncation>& truncation) const {
  return runner::core::attempt([&] { return encode_text(text, options, truncation); });
}

runner::core::Result<Encoding> Pipeline::encode_pair(std::string_view text, std::string_view pair,
                                                     const EncodeOptions& options,
                                                     const std::optional<Truncation>& truncation) const {
  return runner::core::attempt([&] { return join(text, pair, options, truncation); });
}

Encoded Pipeline::tokenize(std::string_view text, const EncodeOptions& options) const {
  if (text.size() > kTextMax) {
    throw RunError("the text has " + std::to_string(text.size()) + " bytes, more than " + std::to_string(kTextMax));
  }
  if (!is_ascii(text)) {
    const auto wrong = runner::core::find_invalid_utf8(text);
    if (wrong != std::string_view::npos) throw RunError("the text is not UTF-8 at byte " + std::to_string(wrong));
  }
  Growth normalizing("the normalizer", text.size()), splitting("the pre-tokenizer", text.size());
  Pieces pieces(text, options.with_offsets || parts_.pre_tokenizers.needs_tracking, normalizing);
  added_.extract(pieces, parts_.normalizer.get());
  pieces.enter(splitting);
  if (parts_.pre_tokenizers.first) parts_.pre_tokenizers.first->apply(pieces);

  Pool<Scratch>::Lease scratch(scratch_);
  Tokens tokens;
  tokens.ids.reserve(text.size() / 3 + 8);
  tokens.lengths.reserve(text.size() / 3 + 8);
  std::vector<Source> sources;
  Encoded encoded;
  for (const Piece& piece : pieces.list) {
    const std::size_t first = tokens.ids.size();
    if (piece.done()) {
      if (options.with_offsets) encoded.added_texts.emplace_back(first, piece.text);
      tokens.add(piece.token, static_cast<std::uint32_t>(piece.text.size()));
    } else {
      parts_.model->tokenize(piece.text, *scratch, tokens);
    }
    if (!options.with_offsets) continue;
    if (options.trim_offsets) {
      add_offsets(pieces, piece, tokens, first, sources);
    } else {
      add_places(pieces, piece, tokens, first, sources);
    }
  }

  encoded.encoding.ids = std::move(tokens.ids);
  encoded.with_offsets = options.with_offsets;
  encoded.only_missing = options.only_missing;
  encoded.vocabulary = &parts_.model->vocabulary();
  if (options.with_offsets) {
    const ToCharacters characters(text);
    encoded.encoding.offsets.reserve(sources.size());
    for (const Source& source : sources) encoded.encoding.offsets.push_back(characters.of(source));
    encoded.trim_offsets = options.trim_offsets;
  }
  return encoded;
}

Encoding Pipeline::encode_text(std::string_view text, const EncodeOptions& options,
                               const std::optional<Truncation>& truncation) const {
  Encoded encoded = tokenize(text, options);
  if (truncation) {
    const bool frames = parts_.post_processor && options.add_special_tokens;
    encoded.cut(room_for_text(*truncation, frames ? parts_.post_processor->added_to_text() : 0), truncation->side);
  }
  if (!parts_.post_processor) return std::move(encoded.encoding);
  Growth framing("the post-processor", encoded.encoding.ids.size(), "tokens");
  parts_.post_processor->apply(encoded, options.add_special_tokens, framing);
  return std::move(encoded.encoding);
}

Encoding Pipeline::join(std::string_view text, std::string_view pair, const EncodeOptions& options,
                        const std::optional<Truncation>& truncation) const {
  EncodedPair both{tokenize(text, options), tokenize(pair, options)};
  for (Encoded* one : {&both.first, &both.second}) {
    const std::size_t size = one->encoding.ids.size();
    one->encoding.type_ids.assign(size, one == &both.first ? 0 : 1);
    one->encoding.origins.assign(size, one == &both.first ? Origin::kFirst : Origin::kSecond);
  }
  const bool frames = parts_.post_processor && options.add_special_tokens;
  if (truncation) shorten(both, *truncation, frames ? parts_.post_processor->added_to_pair() : 0);
  Growth framing("the post-processor", both.first.encoding.ids.size() + both.second.encoding.ids.size(), "tokens");
  if (parts_.post_processor) parts_.post_processor->apply(both, options.add_special_tokens, framing);
  if (!both.joined) both.first.append(both.second);
  return std::move(both.first.encoding);
}

void Pipeline::add_offsets(const Pieces& pieces, const Piece& piece, const Tokens& tokens, std::size_t first,
                           std::vector<Source>& sources) const {
  std::size_t begin = 0;
  std::size_t covered = 0;
  const std::size_t last = piece.text.size() - 1;
  for (std::size_t i = first; i < tokens.ids.size(); ++i) covered += tokens.lengths[i];
  if (parts_.pre_tokenizers.bytes && covered < piece.text.size()) {
    return add_shifted_offsets(pieces, piece, tokens, first, sources);
  }
  for (std::size_t i = first; i < tokens.ids.size(); ++i) {
    // The bytes of a suffix that a word gets, by themselves, are more than the text has.
    const std::size_t from = std::min(begin, last), end = begin + tokens.lengths[i];
    if (tokens.lengths[i] == 0 && i > first) {
      sources.push_back(sources.back());
      continue;
    }
    sources.push_back({pieces.source_of(piece, from).begin, pieces.source_of(piece, std::min(end - 1, last)).end});
    begin = end;
  }
}

void Pipeline::add_places(const Pieces& pieces, const Piece& piece, const Tokens& tokens, std::size_t first,
                          std::vector<Source>& sources) const {
  const std::size_t size = piece.text.size();
  std::size_t at = 0;
  const auto skip = [&] {
    for (std::size_t gap = 1; gap > 0 && at < size && !piece.done(); at += gap) {
      gap = parts_.model->left_out(piece.text, at);
    }
  };
  for (std::size_t i = first; i < tokens.ids.size(); ++i) {
    if (tokens.lengths[i] == 0 && i > first) {
      sources.push_back(sources.back());
      continue;
    }
    skip();
    std::size_t begin = at, end = at;
    for (std::uint32_t left = tokens.lengths[i]; left > 0 && at < size; --left, skip()) end = ++at;
    if (begin == end) begin = std::min(begin, size - 1), end = begin + 1;
    Source place{pieces.source_of(piece, begin).begin, pieces.source_of(piece, end - 1).end};
    // What a normalizer adds comes from no character: it belongs to the next one, at the end to the last one.
    if (place.begin >= place.end && place.begin < pieces.text().size()) {
      place.end = place.begin + static_cast<std::uint32_t>(utf8_size(pieces.text()[place.begin]));
    } else if (place.begin >= place.end) {
      place = {place.end - 1, place.end};
    }
    sources.push_back(place);
  }
}

void Pipeline::add_shifted_offsets(const Pieces& pieces, const Piece& piece, const Tokens& tokens, std::size_t first,
                                   std::vector<Source>& sources) const {
  std::vector<std::size_t> byte_at;  // by the place in what the vocabulary writes for the bytes
  for (std::size_t i = 0; i < piece.text.size(); ++i) {
    const std::size_t size = char_of_byte(static_cast<std::uint8_t>(piece.text[i])) < 0x80 ? 1 : 2;
    byte_at.insert(byte_at.end(), size, i);
  }
  std::size_t begin = 0;
  const std::size_t last = byte_at.size() - 1;
  for (std::size_t i = first; i < tokens.ids.size(); ++i) {
    const std::size_t end = begin + parts_.model->vocabulary().token_of(tokens.ids[i]).value_or("?").size();
    sources.push_back({pieces.source_of(piece, byte_at[std::min(begin, last)]).begin,
                       pieces.source_of(piece, byte_at[std::min(end - 1, last)]).end});
    begin = end;
  }
}

runner::core::Result<std::string> Pipeline::decode(std::span<const std::int32_t> ids, bool skip_special_tokens) const {
  return runner::core::attempt([&] { return decode_ids(ids, skip_special_tokens); });
}

std::string Pipeline::decode_ids(std::span<const std::int32_t> ids, bool skip_special_tokens) const {
  std::vector<std::string> texts;
  texts.reserve(ids.size());
  std::size_t bytes = 0;
  for (const std::int32_t id : ids) {
    auto token = token_of(id);
    if (!token) continue;
    if (skip_special_tokens) {
      const AddedToken* added = added_.find(*token);
      if (added != nullptr && added->special) continue;
    }
    bytes += token->size();
    if (bytes > kTextMax) {
      throw RunError("the tokens have " + std::to_string(bytes) + " bytes, more than " + std::to_string(kTextMax));
    }
    texts.push_back(*std::move(token));
  }
  if (!parts_.decoder) return runner::core::joined(texts, " ");
  Growth decoding("the decoder", bytes);
  parts_.decoder->apply(texts, decoding);
  std::string text;
  for (const std::string& part : texts) text += part;
  return text;
}

std::optional<std::string> Pipeline::token_of(std::int32_t id) const {
  if (const std::string* added = added_.text_of(id)) return *added;
  if (const auto token = parts_.model->vocabulary().token_of(id)) return std::string(*token);
  return std::nullopt;
}

std::optional<std::int32_t> Pipeline::id_of(std::string_view token) const {
  if (const AddedToken* added = added_.find(token)) return added->id;
  return parts_.model->vocabulary().id_of(token);
}

bool Pipeline::is_special(std::int32_t id) const {
  const AddedToken* added = added_.find(id);
  return added != nullptr && added->special;
}

SpecialTokens find_special_tokens(const Tokenizer& tokenizer, const FolderSettings& settings) {
  const auto find = [&](const FolderSettings::Token& token) -> std::optional<std::int32_t> {
    // A token that the vocabulary lacks is none: Transformers would add it, with an id that the model does not know.
    if (token.text) return tokenizer.id_of(*token.text);
    if (!token.id || *token.id < 0 || *token.id >= tokenizer.id_limit()) return std::nullopt;
    const auto id = static_cast<std::int32_t>(*token.id);
    return tokenizer.token_of(id) ? std::optional(id) : std::nullopt;
  };
  return {find(settings.bos), find(settings.eos), find(settings.pad), find(settings.unk), find(settings.mask)};
}

}  // namespace components::tokenizer

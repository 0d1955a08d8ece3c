#pragma once

#include <memory>
#include <optional>

#include "components/tokenizer/normalizer.h"
#include "components/tokenizer/pre_tokenizer.h"

namespace components::tokenizer {

/// What BERT does to a text before it is split (Devlin et al., arXiv:1810.04805).
struct BertNormalization {
  bool clean_text = true;             ///< without control characters; white space becomes spaces
  bool chinese_chars = true;          ///< spaces around Chinese characters
  std::optional<bool> strip_accents;  ///< nothing: as `lowercase`
  bool lowercase = true;
};

std::unique_ptr<Normalizer> make_bert_normalizer(const BertNormalization& wanted);

/// Splits at white space, which goes, and around each character of punctuation.
std::unique_ptr<PreTokenizer> make_bert_pre_tokenizer();

}  // namespace components::tokenizer

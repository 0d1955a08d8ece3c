#pragma once

#include <string>
#include <string_view>
#include <vector>

// The words that metrics of texts compare. Any bytes are taken: what is not UTF-8 becomes U+FFFD.

namespace components::metric {

/// Lower case, without ASCII's punctuation and the articles `a`, `an` and `the`.
///
/// Source  SQuAD's evaluate-v1.1.py, as torchmetrics has it
std::vector<std::string> squad_words(std::string_view text);

/// Runs of `a-z` and `0-9` of the text in lower case.
///
/// Source  rouge-score 0.1.2 without stemmer
std::vector<std::string> rouge_words(std::string_view text);

/// The tokens of mteval-v13a.
///
/// Source  sacrebleu 2.6.0, tokenizer 13a
std::vector<std::string> bleu_words(std::string_view text);

}  // namespace components::metric

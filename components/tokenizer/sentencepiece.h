#pragma once

#include <memory>
#include <string>

#include "components/tokenizer/model/sentencepiece_model.h"
#include "components/tokenizer/settings.h"
#include "components/tokenizer/tokenizer.h"

namespace components::tokenizer {

/// A BPE or unigram model of SentencePiece that encodes and decodes as the `sentencepiece` library does, which differs
/// from what `tokenizers` makes of the same model: of a BPE the highest score is merged first, sums of scores are
/// floats, runs of spaces become one, control pieces are not found in texts and are decoded to nothing. Special tokens
/// are added where the folder of the model says so. Throws RunError that names file and field.
std::shared_ptr<Tokenizer> make_sentencepiece(SentencePieceModel model, const FolderSettings& settings,
                                              Description description);

}  // namespace components::tokenizer

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "components/data/data.h"
#include "components/data/language/jsonl_record.h"
#include "components/data/record/sequence.h"
#include "components/tokenizer/tokenizer.h"
#include "runner/core/result.h"

namespace components::data {

/// Makes sequences for a model with an encoder: the prompt is its source, and the completion what it writes. Both have
/// the tokenizer's own tokens and end with its end token, whatever is cut. Called by several threads.
class SourceTextEncoder {
 public:
  /// Ids that each is cut to; nothing: it is not cut.
  struct Lengths {
    std::optional<std::int64_t> source, target;
  };

  SourceTextEncoder(std::shared_ptr<const tokenizer::Tokenizer> tokenizer, RecordColumns columns, DecoderIds decoder,
                    Lengths lengths);

  /// Failure: another record than a prompt with a completion, both texts.
  runner::core::Result<Sequence> operator()(const std::string& record, std::int64_t vocab_size) const;

 private:
  struct Ids {
    std::vector<std::int32_t> ids;
    std::int64_t whole = 0;  ///< before it was cut; 0: it was not
  };
  runner::core::Result<Ids> encoded(const std::string& text, std::optional<std::int64_t> length) const;

  std::shared_ptr<const tokenizer::Tokenizer> tokenizer_;
  RecordColumns columns_;
  DecoderIds decoder_;
  Lengths lengths_;
};

}  // namespace components::data

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "components/data/data.h"
#include "components/data/record/sequence.h"
#include "components/tokenizer/tokenizer.h"
#include "generated/data/jsonl.h"  // Config
#include "runner/core/result.h"

namespace components::data::jsonl {

// Records for a head that tells something of texts.

/// False, with errors, where the set has keys of records that are learnt as they are.
bool fits_head(const Config& config, const Inputs& inputs);
/// False, with an error, where the set of a model without such a head has keys of one.
bool fits_no_head(const Config& config, const Inputs& inputs);

/// RecordSetOptions::parse. `max_length`: ids that a text is cut to; nothing: none is cut.
std::function<runner::core::Result<Sequence>(const std::string& record, std::int64_t vocab_size)> encoder_of_head(
    const Config& config, const Inputs& inputs, std::shared_ptr<const tokenizer::Tokenizer> tokenizer,
    std::optional<std::int64_t> max_length);

}  // namespace components::data::jsonl

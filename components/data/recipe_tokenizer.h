#pragma once

#include <memory>
#include <optional>

#include "components/data/data.h"
#include "components/tokenizer/tokenizer.h"

namespace components::data {

/// The tokenizer of a data set: its own block, else the recipe's. A null pointer when neither has one: text is bytes.
/// Nothing when an error was reported.
std::optional<std::shared_ptr<const tokenizer::Tokenizer>> tokenizer_of(const std::optional<runner::core::Node>& own,
                                                                        const Inputs& inputs);

}  // namespace components::data

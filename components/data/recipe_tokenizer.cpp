#include "components/data/recipe_tokenizer.h"

namespace components::data {

TokenizerSource tokenizer_source(const std::optional<runner::core::Node>& block,
                                 runner::core::Diagnostics& diagnostics) {
  if (!block) return nullptr;
  using Read = std::optional<std::shared_ptr<const tokenizer::Tokenizer>>;
  return [&block, &diagnostics, read = std::make_shared<Read>()] {
    if (!*read) *read = tokenizer::build(*block, {*block, diagnostics});
    return **read;
  };
}

std::optional<std::shared_ptr<const tokenizer::Tokenizer>> tokenizer_of(const std::optional<runner::core::Node>& own,
                                                                        const Inputs& inputs) {
  const int before = inputs.diagnostics.error_count();
  std::shared_ptr<const tokenizer::Tokenizer> found;
  if (own) {
    found = tokenizer::build(*own, {*own, inputs.diagnostics});
  } else if (inputs.tokenizer) {
    found = inputs.tokenizer();
    if (found == nullptr) return std::nullopt;  // what is wrong is said once
  }
  if (inputs.diagnostics.error_count() != before) return std::nullopt;
  return found;
}

}  // namespace components::data

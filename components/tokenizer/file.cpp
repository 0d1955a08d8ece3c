#include "generated/tokenizer/file.h"
#include "components/tokenizer/tokenizer.h"
#include "runner/core/text/utf8.h"

namespace components::tokenizer::file {
namespace {

const runner::core::Location& place_of(const Inputs& inputs, const char* key) {
  const runner::core::Node* value = inputs.block.find(key);
  return (value != nullptr ? *value : inputs.block).location();
}

}  // namespace

std::shared_ptr<const Tokenizer> make(const Config& config, const Inputs& inputs) {
  auto read = read_tokenizer(config.path);
  if (!read) {
    inputs.diagnostics.error(place_of(inputs, "path"), "tokenizer: " + read.failure().message, read.failure().hint);
    return nullptr;
  }
  const std::shared_ptr<Tokenizer> tokenizer = std::move(read).value();
  Choices choices;
  choices.add_special_tokens = config.add_special_tokens;
  if (config.padding_side == PaddingSide::kLeft) choices.padding_side = Side::kLeft;
  if (config.truncation_side) {
    choices.truncation_side = *config.truncation_side == TruncationSide::kLeft ? Side::kLeft : Side::kRight;
  }
  if (config.pad_token) {
    choices.pad = tokenizer->id_of(*config.pad_token);
    if (!choices.pad) {
      inputs.diagnostics.error(place_of(inputs, "pad_token"),
                               "tokenizer: it has no token " + runner::core::quote(*config.pad_token),
                               "`roux tokenizer info " + config.path + "` lists its special tokens");
      return nullptr;
    }
  }
  tokenizer->choose(choices);
  return tokenizer;
}

}  // namespace components::tokenizer::file

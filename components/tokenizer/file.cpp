#include "generated/tokenizer/file.h"
#include "components/tokenizer/tokenizer.h"

namespace components::tokenizer::file {

std::shared_ptr<const Tokenizer> make(const Config& config, const Inputs& inputs) {
  auto read = read_tokenizer(config.path);
  if (read) return std::move(read).value();
  const runner::core::Node* path = inputs.block.find("path");
  inputs.diagnostics.error((path != nullptr ? *path : inputs.block).location(), "tokenizer: " + read.failure().message,
                           read.failure().hint);
  return nullptr;
}

}  // namespace components::tokenizer::file

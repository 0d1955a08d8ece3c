#include "components/data/record/tokenized_set.h"

#include "components/tokenizer/tokenizer.h"
#include "runner/core/error.h"

namespace components::data {

TokenizedSet::TokenizedSet(const RecordSetOptions& options)
    : read_beside_(options.read_beside), tokenizer_(options.tokenizer) {
  for (const TextFile& file : options.files) paths_.push_back(file.path);
}

std::vector<std::string> TokenizedSet::files() const {
  std::vector<std::string> all = paths_;
  if (tokenizer_ != nullptr) all.push_back(tokenizer_->description().path);
  all.insert(all.end(), read_beside_.begin(), read_beside_.end());
  return all;
}

std::string TokenizedSet::decode(std::span<const std::int64_t> ids) const {
  if (tokenizer_ == nullptr) return "";
  return tokenizer_->decode(std::vector<std::int32_t>(ids.begin(), ids.end())).value();
}

std::vector<std::int64_t> TokenizedSet::encode(const std::string& text) const {
  if (tokenizer_ == nullptr) return {};
  const auto encoded = tokenizer_->encode(text, tokenizer_->for_text());
  if (!encoded) throw runner::core::RunError(encoded.failure().message, encoded.failure().hint);
  return {encoded.value().ids.begin(), encoded.value().ids.end()};
}

}  // namespace components::data

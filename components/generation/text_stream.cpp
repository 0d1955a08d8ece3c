#include "components/generation/text_stream.h"

#include <string_view>

namespace components::generation {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD stands for what is not whole yet

}  // namespace

std::string TextStream::push(std::int32_t token) {
  tokens_.push_back(token);
  return take(/*whole_only=*/true);
}

std::string TextStream::finish() { return take(/*whole_only=*/false); }

std::string TextStream::take(bool whole_only) {
  const std::span<const std::int32_t> tokens(tokens_);
  const std::string before = decode_(tokens.subspan(begin_, returned_ - begin_));
  const std::string now = decode_(tokens.subspan(begin_));
  if (now.size() <= before.size() || (whole_only && now.ends_with(kReplacement))) return "";
  begin_ = returned_;
  returned_ = tokens_.size();
  return now.substr(before.size());
}

}  // namespace components::generation

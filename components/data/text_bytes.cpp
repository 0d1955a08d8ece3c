#include "components/data/text_bytes.h"

#include <iterator>
#include <vector>

#include "components/tokenizer/tokenizer.h"

namespace components::data {

std::function<std::int64_t(std::span<const std::int64_t> ids)> text_bytes(const Dataset& set) {
  if (const auto tokenizer = set.tokenizer()) {
    return [tokenizer](std::span<const std::int64_t> ids) {
      const std::vector<std::int32_t> narrow(ids.begin(), ids.end());
      return std::ssize(tokenizer->decode(narrow, /*skip_special_tokens=*/true).value());
    };
  }
  const std::int64_t any[] = {'a'};
  if (set.decode(any).empty()) return {};
  return [](std::span<const std::int64_t> ids) { return std::ssize(ids); };
}

}  // namespace components::data

#include "components/data/text_bytes.h"

#include <iterator>

#include "components/data/text_utils.h"
#include "components/tokenizer/tokenizer.h"

namespace components::data {

std::string text_of_bytes(std::span<const std::int64_t> ids) {
  std::string bytes;
  for (const std::int64_t id : ids) bytes += static_cast<char>(static_cast<unsigned char>(id));
  return valid_utf8(bytes);
}

std::vector<std::int64_t> bytes_of_text(std::string_view text) {
  std::vector<std::int64_t> ids;
  for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
  return ids;
}

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

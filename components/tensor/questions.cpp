#include "components/tensor/questions.h"

#include <string_view>

namespace components::data {

std::string Questions::text_of(std::size_t question, std::int64_t begin, std::int64_t end) const {
  const std::string& context = contexts[all[question].context];
  std::size_t first = context.size(), last = context.size();
  std::int64_t character = -1;
  for (std::size_t i = 0; i < context.size(); ++i) {
    if ((static_cast<unsigned char>(context[i]) & 0xC0U) == 0x80U) continue;
    ++character;
    if (character == begin) first = i;
    if (character == end) {
      last = i;
      break;
    }
  }
  return context.substr(first, last - first);
}

}  // namespace components::data

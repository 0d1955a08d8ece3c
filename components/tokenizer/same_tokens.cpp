#include "components/tokenizer/same_tokens.h"

#include <algorithm>

#include "runner/core/text/utf8.h"

namespace components::tokenizer {

std::string other_token(const Tokenizer& own, const std::string& own_name, const Tokenizer& other,
                        const std::string& other_name) {
  const std::int32_t both = std::min(own.id_limit(), other.id_limit());
  for (std::int32_t id = 0; id < both; ++id) {
    const auto here = own.token_of(id), there = other.token_of(id);
    if (!here || !there || here == there) continue;
    // A base model has reserved tokens, which what is trained from it gives names.
    const bool renamed = own.is_special(id) && other.is_special(id) && !other.id_of(*here) && !own.id_of(*there);
    if (renamed) continue;
    return "id " + std::to_string(id) + " is " + runner::core::quote(*here) + " in " + own_name + " and " +
           runner::core::quote(*there) + " in " + other_name;
  }
  return "";
}

}  // namespace components::tokenizer

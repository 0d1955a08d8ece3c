#pragma once

#include <string>

#include "components/tokenizer/tokenizer.h"

namespace components::tokenizer {

/// Whether ids of `own` mean to a model what they meant with `other`, which it was trained with: the first that does
/// not, as `id 5 is "a" in OWN_NAME and "b" in OTHER_NAME`; "" when all agree. Either may have more tokens than the
/// other, behind its last or where the other's ids have holes, and a special token may be called otherwise unless both
/// have it with another id.
std::string other_token(const Tokenizer& own, const std::string& own_name, const Tokenizer& other,
                        const std::string& other_name);

}  // namespace components::tokenizer

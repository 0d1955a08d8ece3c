#pragma once

#include <string_view>

namespace components::optimizer {

/// Whether a parameter's name fits: `*` in the pattern stands for any text, also for none; everything else for itself.
bool matches_name(std::string_view pattern, std::string_view name);

}  // namespace components::optimizer

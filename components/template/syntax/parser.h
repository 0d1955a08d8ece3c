#pragma once

#include <string_view>

#include "components/template/syntax/syntax.h"

namespace components::jinja {

/// Throws Failed, with the place.
Tree parse_template(std::string_view source);

}  // namespace components::jinja

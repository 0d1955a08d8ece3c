#pragma once

#include <string_view>
#include <unordered_map>

#include "components/template/machine/functions.h"

namespace components::jinja {

using FilterTable = std::unordered_map<std::string_view, Filter>;

const FilterTable& text_filters();
const FilterTable& list_filters();
const FilterTable& choosing_filters();

}  // namespace components::jinja

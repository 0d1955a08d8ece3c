#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "components/data/data.h"

namespace components::data {

/// The text of ids that are bytes, each invalid one U+FFFD; and the bytes of a text as ids.
std::string text_of_bytes(std::span<const std::int64_t> ids);
std::vector<std::int64_t> bytes_of_text(std::string_view text);

/// Counts the bytes of UTF-8 of the text that ids of a set spell, without special tokens; each is one where ids are
/// bytes. No function where nothing says what text they are.
std::function<std::int64_t(std::span<const std::int64_t> ids)> text_bytes(const Dataset& set);

}  // namespace components::data

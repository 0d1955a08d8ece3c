#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "components/data/data.h"

namespace components::data {

/// Counts the bytes of UTF-8 of the text that ids of a set spell, without special tokens; each is one where ids are
/// bytes. No function where nothing says what text they are.
std::function<std::int64_t(std::span<const std::int64_t> ids)> text_bytes(const Dataset& set);

}  // namespace components::data

#pragma once

#include <string>

#include "components/data/token_stream.h"

namespace components::data {

/// What a file's tokens look like if they are of another type than `layout` says, as a sentence about the file with
/// what to write instead; both "" if they may be of that type. Reads the file's beginning and middle.
struct OtherType {
  std::string what, hint;
};
OtherType look_at_type(const std::string& path, const TokenStream::Layout& layout);

}  // namespace components::data

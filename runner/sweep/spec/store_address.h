#pragma once

#include <string>
#include <string_view>

#include "runner/core/result.h"

namespace runner::sweep {

/// `postgresql://HOST/DATABASE`, and the sweep in it: the text after a `#`, or "".
struct StoreAddress {
  std::string store, sweep;
};

/// Whether a text looks like one.
bool is_store_address(std::string_view text);

/// Failure if it contains a password, which would be stored in recipes and shown by `ps`.
core::Result<StoreAddress> read_store_address(const std::string& text);

}  // namespace runner::sweep

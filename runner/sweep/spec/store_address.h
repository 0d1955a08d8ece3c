#pragma once

#include <string>
#include <string_view>

#include "runner/core/result.h"

namespace runner::sweep {

/// `postgresql://HOST/DATABASE`, and the sweep in it that is meant: what stands after a `#`, or "".
struct StoreAddress {
  std::string store, sweep;
};

/// Whether a text is meant as one.
bool is_store_address(std::string_view text);

/// Failure where it has a password in it, which would be written down in recipes, and shown by `ps`.
core::Result<StoreAddress> read_store_address(const std::string& text);

}  // namespace runner::sweep

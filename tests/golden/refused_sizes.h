#pragma once

#include <string>

#include "tests/support/golden.h"

namespace tests::golden {

/// Why a size that Accelerate refuses is read here; "" where it must be refused here as well.
inline std::string reason_to_read(const Json& size) {
  const std::string text = size.is_string() ? size.get<std::string>() : "";
  if (text.empty()) return "";
  if (text.find_first_not_of("0123456789") == std::string::npos) return "digits as text";
  if (text.find_first_of("tT") != std::string::npos) return "TB and TiB";
  return text.back() == ' ' ? "a blank at the end" : "";
}

}  // namespace tests::golden

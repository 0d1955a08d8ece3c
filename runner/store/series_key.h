#pragma once

#include <string>

namespace runner::store {

/// How users name a series: `loss` of the context "train", `val/loss` of "val".
inline std::string series_key(const std::string& name, const std::string& context) {
  return context == "train" ? name : context + "/" + name;
}

}  // namespace runner::store

#pragma once

#include <string>
#include <vector>

#include "runner/core/node.h"

namespace runner::pretrained {

/// A field in which two configurations ask for other functions of the same weights.
struct Difference {
  std::string field;  ///< as Transformers calls it: `rope_theta`
  std::string here, there;
};

/// What two checked configurations compute differently although the shapes of their weights may be the same: heads,
/// activation, eps of norms, rotary positions, windows. Empty where they are of other families, such as gpt2 and llama:
/// there no weight has the same name.
std::vector<Difference> differences(const core::Node& here, const core::Node& there);

}  // namespace runner::pretrained

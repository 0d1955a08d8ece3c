#include "components/tokenizer/text/growth.h"

#include <algorithm>
#include <utility>

#include "runner/core/error.h"

namespace components::tokenizer {
namespace {

// Normal forms write up to 11 times the bytes of rare characters, and bytes as characters double them; what real
// tokenizers make of a text is twice or three times as long. A short text may get a long prefix.
constexpr std::size_t kTimes = 16, kAlways = 1 << 18;
constexpr std::size_t kSteps = 16;  // that may write as much as one may

}  // namespace

Growth::Growth(std::string stage, std::size_t before, const char* unit)
    : stage_(std::move(stage)),
      unit_(unit),
      before_(before),
      step_max_(before > kMax / kTimes ? kMax : std::min(kMax, kAlways + kTimes * before)),
      all_max_(kSteps * (kAlways + kTimes * std::min(before, kMax))) {}

void Growth::refuse(std::size_t size, std::size_t max) const {
  throw runner::core::RunError(stage_ + " makes " + std::to_string(size) + " " + unit_ + " of " +
                                   std::to_string(before_) + ", more than the " + std::to_string(max) +
                                   " that are allowed",
                               "check the steps of the tokenizer, and where it comes from: no model needs as many");
}

}  // namespace components::tokenizer

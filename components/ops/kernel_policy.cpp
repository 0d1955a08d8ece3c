#include "components/ops/kernel_policy.h"

#include <ATen/autocast_mode.h>

#include <atomic>
#include <cstdlib>
#include <string_view>

#include "components/kernels/processor.h"

namespace components {
namespace {

std::atomic<bool> are_allowed{true}, are_kept{true};
std::atomic<int> pretended{-1};  // 0 and 1: what a test said

bool is_asked_for() {
  const char* asked = std::getenv("ROUX_CPU_BF16");
  return asked != nullptr && std::string_view(asked) == "1";
}

}  // namespace

bool fused_kernels() { return are_allowed; }

void set_fused_kernels(bool allowed) { are_allowed = allowed; }

bool has_bf16_units() {
  static const bool found = kernels::processor().multiplies_bf16_faster() || is_asked_for();
  const int told = pretended;
  return told < 0 ? found : told == 1;
}

void pretend_bf16_units(std::optional<bool> has) { pretended = has ? static_cast<int>(*has) : -1; }

bool fused_kernels_fit_autocast() {
  return !at::autocast::is_autocast_enabled(at::kCPU) || at::autocast::get_autocast_dtype(at::kCPU) == at::kBFloat16;
}

bool keeps_low_weights() { return are_kept; }

void set_keeps_low_weights(bool keeps) { are_kept = keeps; }

bool lowers_to_bf16() {
  return has_bf16_units() && at::autocast::is_autocast_enabled(at::kCPU) &&
         at::autocast::get_autocast_dtype(at::kCPU) == at::kBFloat16;
}

}  // namespace components

#include "components/fused.h"

#include <atomic>

namespace components {
namespace {

std::atomic<bool> are_allowed{true};

}  // namespace

bool fused_kernels() { return are_allowed; }

void set_fused_kernels(bool allowed) { are_allowed = allowed; }

}  // namespace components

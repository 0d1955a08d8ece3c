#include "components/kernels/enabled.h"

#include <atomic>

namespace components::kernels {
namespace {

std::atomic<bool> is_enabled{true};

}  // namespace

bool enabled() { return is_enabled; }

void set_enabled(bool enabled) { is_enabled = enabled; }

}  // namespace components::kernels

#include "components/tensor/autocast.h"

#include <ATen/autocast_mode.h>

#include "components/tensor/meta_pass.h"

namespace components {
namespace {

using Type = AutocastOptions::Type;

at::ScalarType dtype_of(Type type) { return type == Type::kFp16 ? at::kHalf : at::kBFloat16; }

Type type_of(at::ScalarType dtype) { return dtype == at::kHalf ? Type::kFp16 : Type::kBf16; }

}  // namespace

Autocast::Autocast(const AutocastOptions& options)
    : device_(options.device), active_(options.type != Type::kNone || options.by_block) {
  if (!active_) return;
  enabled_before_ = at::autocast::is_autocast_enabled(device_);
  type_before_ = type_of(at::autocast::get_autocast_dtype(device_));
  cache_before_ = at::autocast::is_autocast_cache_enabled();
  at::autocast::set_autocast_cache_enabled(options.cache);
  at::autocast::increment_nesting();
  set_type(options.type, device_);
}

AutocastOptions Autocast::now(c10::DeviceType device) {
  const bool enabled = at::autocast::is_autocast_enabled(device);
  return {.type = enabled ? type_of(at::autocast::get_autocast_dtype(device)) : Type::kNone,
          .cache = at::autocast::is_autocast_cache_enabled(),
          .by_block = true,
          .device = device};
}

Autocast::~Autocast() {
  if (!active_) return;
  // The cache holds lower copies of the weights, which the next optimizer step makes stale.
  if (at::autocast::decrement_nesting() == 0) {
    at::autocast::clear_cache();
    MetaPass::clear_autocast_cache();
  }
  at::autocast::set_autocast_cache_enabled(cache_before_);
  at::autocast::set_autocast_dtype(device_, dtype_of(type_before_));
  at::autocast::set_autocast_enabled(device_, enabled_before_);
}

bool Autocast::is_on(c10::DeviceType device) {
  return at::autocast::is_autocast_available(device) && at::autocast::is_autocast_enabled(device);
}

void Autocast::set_type(Type type, c10::DeviceType device) {
  at::autocast::set_autocast_enabled(device, type != Type::kNone);
  if (type == Type::kNone) return;
  // The cache finds a weight whatever type its copy has, and a tied weight may be used in both.
  if (at::autocast::get_autocast_dtype(device) != dtype_of(type)) {
    at::autocast::clear_cache();
    MetaPass::clear_autocast_cache();
  }
  at::autocast::set_autocast_dtype(device, dtype_of(type));
}

}  // namespace components

#pragma once

#include <c10/core/DeviceType.h>

namespace components {

struct AutocastOptions {
  enum class Type { kNone, kBf16, kFp16 };
  Type type = Type::kNone;
  bool cache = true;                              ///< lower copies of the weights live as long as the Autocast
  bool by_block = false;                          ///< block hooks turn it on and off meanwhile (`precision.overrides`)
  c10::DeviceType device = c10::DeviceType::CPU;  ///< where the products are computed
};

/// Mixed precision on one kind of device while it lives: matrix products in bfloat16 or float16, reductions and losses
/// in float32. Restores the previous state, whatever was set meanwhile.
///
/// Source  torch.autocast(device_type, dtype, cache_enabled)
class Autocast {
 public:
  explicit Autocast(const AutocastOptions& options);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

  /// Whether products on this kind of device are computed in another type than their inputs have.
  static bool is_on(c10::DeviceType device);
  /// Switches to another type within a living Autocast.
  static void set_type(AutocastOptions::Type type, c10::DeviceType device);
  /// The current state, to reproduce it elsewhere with an Autocast of these options.
  static AutocastOptions now(c10::DeviceType device);

 private:
  c10::DeviceType device_;
  bool active_, enabled_before_ = false, cache_before_ = true;
  AutocastOptions::Type type_before_ = AutocastOptions::Type::kNone;
};

}  // namespace components

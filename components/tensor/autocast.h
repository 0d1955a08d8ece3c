#pragma once

namespace components {

struct AutocastOptions {
  enum class Type { kNone, kBf16, kFp16 };
  Type type = Type::kNone;
  bool cache = true;      ///< lower copies of the weights live as long as the Autocast
  bool by_block = false;  ///< block hooks turn it on and off meanwhile (`precision.overrides`)
};

/// Mixed precision on the CPU while it lives: matrix products in bfloat16 or float16, reductions and losses in float32.
/// Gives back the state that it found, whatever was set meanwhile.
///
/// Source  torch.autocast("cpu", dtype, cache_enabled)
class Autocast {
 public:
  explicit Autocast(const AutocastOptions& options);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

  /// Goes on with another type inside of a living Autocast.
  static void set_type(AutocastOptions::Type type);
  /// What brings back the present state somewhere else: an Autocast of these options, on or off.
  static AutocastOptions now();

 private:
  bool active_, enabled_before_ = false, cache_before_ = true;
  AutocastOptions::Type type_before_ = AutocastOptions::Type::kNone;
};

}  // namespace components

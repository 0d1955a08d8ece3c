#include "components/data/in_memory.h"

#include "components/data/block_location.h"
#include "runner/core/platform/machine.h"
#include "runner/core/units.h"

namespace components::data {

bool fits_in_memory(double bytes, const char* key, const std::string& hint, const Inputs& inputs) {
  using runner::core::format_bytes;
  const std::int64_t limit = runner::core::memory_limit();
  if (bytes <= 0.5 * static_cast<double>(limit)) return true;
  inputs.diagnostics.error(location_of(inputs.block, key),
                           "data." + inputs.name + " would take " + format_bytes(static_cast<std::int64_t>(bytes)) +
                               ", but this machine has " + format_bytes(limit) + " of memory",
                           hint);
  return false;
}

}  // namespace components::data

#pragma once

#include <cstdint>
#include <string>

namespace runner::core {

/// Who listens at a TCP port of this machine, as `process 4711 (nginx)`; "" when that cannot be seen from here, as with
/// another user's process.
std::string holder_of_port(std::uint16_t port);

}  // namespace runner::core

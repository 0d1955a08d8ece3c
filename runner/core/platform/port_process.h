#pragma once

#include <cstdint>
#include <string>

namespace runner::core {

/// The process that listens at a TCP port of this machine, as `process 4711 (nginx)`; "" when not visible, as for
/// another user's process.
std::string process_on_port(std::uint16_t port);

}  // namespace runner::core

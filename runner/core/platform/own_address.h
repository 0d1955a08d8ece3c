#pragma once

#include <cstdint>
#include <string>

namespace runner::core {

/// The address (IPv4) of this machine at which another one sees it, by the way that leads there; "" when there is none
/// or the name is unknown.
std::string own_address_towards(const std::string& other, std::uint16_t port);

}  // namespace runner::core

#pragma once

#include <cstdint>
#include <string>

namespace runner::core {

/// The IPv4 address of this machine on the route to another host; "" when there is none or the name is unknown.
std::string own_address_towards(const std::string& other, std::uint16_t port);

}  // namespace runner::core

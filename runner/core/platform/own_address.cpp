#include "runner/core/platform/own_address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

namespace runner::core {

std::string own_address_towards(const std::string& other, std::uint16_t port) {
  addrinfo wanted = {}, *found = nullptr;
  wanted.ai_family = AF_INET;
  wanted.ai_socktype = SOCK_DGRAM;  // which connects without a packet
  if (getaddrinfo(other.c_str(), std::to_string(port).c_str(), &wanted, &found) != 0) return "";
  const int descriptor = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  socklen_t size = sizeof address;
  char text[INET_ADDRSTRLEN] = {};
  if (connect(descriptor, found->ai_addr, found->ai_addrlen) == 0 &&
      getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size) == 0) {
    inet_ntop(AF_INET, &address.sin_addr, text, sizeof text);
  }
  freeaddrinfo(found);
  if (descriptor >= 0) close(descriptor);
  return text;
}

}  // namespace runner::core

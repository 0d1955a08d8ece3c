#pragma once

#include <cstdint>
#include <utility>

namespace runner::core {

/// A listening TCP socket. Clients wait until a server accepts, so the port can be announced before there is a server.
class ListeningSocket {
 public:
  ListeningSocket();  ///< of 127.0.0.1, at a port which was free; RunError when the system has none
  /// Of all addresses of this machine, at this port; 0: at one which was free. RunError naming the process that has it.
  explicit ListeningSocket(std::uint16_t port);
  ~ListeningSocket();
  ListeningSocket(const ListeningSocket&) = delete;
  ListeningSocket& operator=(const ListeningSocket&) = delete;

  std::uint16_t port() const { return port_; }
  int descriptor() const { return descriptor_; }
  int release() { return std::exchange(descriptor_, -1); }  ///< transfers ownership to the caller

 private:
  void listen_at(std::uint32_t address, std::uint16_t port);

  int descriptor_ = -1;
  std::uint16_t port_ = 0;
};

}  // namespace runner::core

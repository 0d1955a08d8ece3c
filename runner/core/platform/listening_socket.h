#pragma once

#include <cstdint>
#include <utility>

namespace runner::core {

/// A TCP socket that listens. Who connects waits until somebody serves it, so that the port can be told before there is
/// a server.
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
  int release() { return std::exchange(descriptor_, -1); }  ///< the caller's from now on

 private:
  void listen_at(std::uint32_t address, std::uint16_t port);

  int descriptor_ = -1;
  std::uint16_t port_ = 0;
};

}  // namespace runner::core

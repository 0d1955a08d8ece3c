#pragma once

#include <cstdint>
#include <utility>

namespace runner::core {

/// A TCP socket of 127.0.0.1 that listens at a port which was free. Who connects waits until somebody serves it, so
/// that the port can be told before there is a server.
class ListeningSocket {
 public:
  ListeningSocket();  ///< RunError when the system has none
  ~ListeningSocket();
  ListeningSocket(const ListeningSocket&) = delete;
  ListeningSocket& operator=(const ListeningSocket&) = delete;

  std::uint16_t port() const { return port_; }
  int descriptor() const { return descriptor_; }
  int release() { return std::exchange(descriptor_, -1); }  ///< the caller's from now on

 private:
  int descriptor_ = -1;
  std::uint16_t port_ = 0;
};

}  // namespace runner::core

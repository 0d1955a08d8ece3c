#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runner/core/node.h"
#include "runner/core/result.h"

namespace runner::launch {

/// A connection between the supervisors of two machines: mappings as lines of JSON, in both directions. TCP keep-alive
/// detects a machine that is down or unreachable, so that a supervisor that is only slow is not lost.
class AgentConnection {
 public:
  struct Options {
    int monitor_interval_s = 1;
  };
  /// Takes over a connected socket.
  AgentConnection(int descriptor, const Options& options);
  ~AgentConnection();
  AgentConnection(AgentConnection&& other) noexcept;
  AgentConnection& operator=(AgentConnection&& other) noexcept;

  int descriptor() const { return descriptor_; }  ///< for poll(); -1 when it has ended
  bool is_open() const { return descriptor_ >= 0; }
  const std::string& peer() const { return peer_; }  ///< address of the other end
  void send(const core::Node& message);              ///< ends the connection on failure
  /// The messages received so far. Ends the connection when the other end closed it or sent an invalid message.
  std::vector<core::Node> receive();
  void end(const std::string& why);
  const std::string& why_it_ended() const { return why_; }

 private:
  int descriptor_ = -1;
  std::string peer_, begun_, why_;
};

/// One attempt to connect. Failure when there is no connection within `timeout_ms`.
core::Result<int> try_connect(const std::string& address, std::uint16_t port, int timeout_ms);

/// Whether an address, or the first address of a host name, belongs to this machine. Failure for an unknown name.
core::Result<bool> is_own_address(const std::string& address);

}  // namespace runner::launch

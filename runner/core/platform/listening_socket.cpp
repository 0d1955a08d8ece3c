#include "runner/core/platform/listening_socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "runner/core/error.h"
#include "runner/core/platform/port_process.h"

namespace runner::core {
namespace {

constexpr int kBacklog = 1024;  // all ranks may connect before the server accepts

}  // namespace

ListeningSocket::ListeningSocket() { listen_at(INADDR_LOOPBACK, 0); }

ListeningSocket::ListeningSocket(std::uint16_t port) { listen_at(INADDR_ANY, port); }

void ListeningSocket::listen_at(std::uint32_t of, std::uint16_t port) {
  descriptor_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(of);
  address.sin_port = htons(port);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  const int yes = 1;  // connections of a server that is gone do not keep the port
  if (descriptor_ >= 0 && setsockopt(descriptor_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
      bind(descriptor_, generic, size) == 0 && listen(descriptor_, kBacklog) == 0 &&
      getsockname(descriptor_, generic, &size) == 0) {
    port_ = ntohs(address.sin_port);
    return;
  }
  const int error = errno;
  if (descriptor_ >= 0) close(descriptor_);
  if (port == 0) throw RunError(std::string("cannot listen at any port: ") + std::strerror(error));
  const std::string holder = error == EADDRINUSE ? process_on_port(port) : "";
  throw RunError("cannot listen at port " + std::to_string(port) + ": " +
                     (holder.empty() ? std::strerror(error) : holder + " has it"),
                 "stop that process, or use another port on all machines");
}

ListeningSocket::~ListeningSocket() {
  if (descriptor_ >= 0) close(descriptor_);
}

}  // namespace runner::core

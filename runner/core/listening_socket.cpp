#include "runner/core/listening_socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "runner/core/error.h"

namespace runner::core {
namespace {

constexpr int kBacklog = 1024;  // all ranks may come before the server does

}  // namespace

ListeningSocket::ListeningSocket() : descriptor_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (descriptor_ < 0 || bind(descriptor_, generic, size) != 0 || listen(descriptor_, kBacklog) != 0 ||
      getsockname(descriptor_, generic, &size) != 0) {
    const std::string why = std::strerror(errno);
    if (descriptor_ >= 0) close(descriptor_);
    throw RunError("cannot listen at a port of 127.0.0.1: " + why);
  }
  port_ = ntohs(address.sin_port);
}

ListeningSocket::~ListeningSocket() {
  if (descriptor_ >= 0) close(descriptor_);
}

}  // namespace runner::core

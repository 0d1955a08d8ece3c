#include "runner/launch/agent_connection.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "runner/core/json.h"

namespace runner::launch {
namespace {

constexpr std::size_t kMessageBytesMax = 1 << 20;
constexpr int kQuestions = 3;  // unanswered, then the other end is lost

std::string system_text(int error) { return std::strerror(error); }

void set(int descriptor, int level, int name, int value) { setsockopt(descriptor, level, name, &value, sizeof value); }

std::string address_of_peer(int descriptor) {
  sockaddr_in address = {};
  socklen_t size = sizeof address;
  char text[INET_ADDRSTRLEN] = {};
  if (getpeername(descriptor, reinterpret_cast<sockaddr*>(&address), &size) != 0 || address.sin_family != AF_INET)
    return "?";
  inet_ntop(AF_INET, &address.sin_addr, text, sizeof text);
  return text;
}

core::Result<sockaddr_in> resolved(const std::string& name, std::uint16_t port) {
  addrinfo wanted = {}, *found = nullptr;
  wanted.ai_family = AF_INET;
  wanted.ai_socktype = SOCK_STREAM;
  const int error = getaddrinfo(name.c_str(), nullptr, &wanted, &found);
  if (error != 0) {
    return core::Failure{"no IPv4 address for " + name + ": " + gai_strerror(error),
                         "set launch.main_process_ip to the address or host name of machine 0"};
  }
  sockaddr_in address = {};
  std::memcpy(&address, found->ai_addr, sizeof address);
  address.sin_port = htons(port);
  freeaddrinfo(found);
  return address;
}

}  // namespace

AgentConnection::AgentConnection(int descriptor, const Options& options)
    : descriptor_(descriptor), peer_(address_of_peer(descriptor)) {
  fcntl(descriptor, F_SETFL, O_NONBLOCK);
  fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  set(descriptor, IPPROTO_TCP, TCP_NODELAY, 1);
  set(descriptor, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(descriptor, IPPROTO_TCP, TCP_KEEPIDLE, options.monitor_interval_s);
  set(descriptor, IPPROTO_TCP, TCP_KEEPINTVL, options.monitor_interval_s);
  set(descriptor, IPPROTO_TCP, TCP_KEEPCNT, kQuestions);
  set(descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT, kQuestions * options.monitor_interval_s * 1000);
}

AgentConnection::~AgentConnection() {
  if (descriptor_ >= 0) close(descriptor_);
}

AgentConnection::AgentConnection(AgentConnection&& other) noexcept { *this = std::move(other); }

AgentConnection& AgentConnection::operator=(AgentConnection&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(peer_, other.peer_);
  std::swap(begun_, other.begun_);
  std::swap(why_, other.why_);
  return *this;
}

void AgentConnection::end(const std::string& why) {
  why_ = why;
  close(std::exchange(descriptor_, -1));
}

void AgentConnection::send(const core::Node& message) {
  if (!is_open()) return;
  const std::string line = core::to_json(message, -1) + "\n";
  // Messages are few and short: if one does not fit into the kernel's buffer, the other end does not read.
  const ssize_t sent = ::send(descriptor_, line.data(), line.size(), MSG_NOSIGNAL);
  if (sent == static_cast<ssize_t>(line.size())) return;
  end(sent < 0 ? system_text(errno) : "it does not read messages");
}

std::vector<core::Node> AgentConnection::receive() {
  std::vector<core::Node> messages;
  char bytes[65536];
  while (is_open()) {
    const ssize_t got = recv(descriptor_, bytes, sizeof bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) break;
    if (got <= 0) {
      end(got == 0 ? "it closed the connection" : system_text(errno));
      break;
    }
    begun_.append(bytes, static_cast<std::size_t>(got));
    for (std::size_t newline = begun_.find('\n'); newline != std::string::npos; newline = begun_.find('\n')) {
      auto message = core::parse_json(std::string_view(begun_).substr(0, newline));
      begun_.erase(0, newline + 1);
      if (message && message.value().is_mapping()) {
        messages.push_back(std::move(message).value());
      } else {
        end("it sent an invalid message");
        return messages;
      }
    }
    if (begun_.size() > kMessageBytesMax) end("it sent an invalid message");
  }
  return messages;
}

core::Result<int> try_connect(const std::string& address, std::uint16_t port, int timeout_ms) {
  const auto place = resolved(address, port);
  if (!place) return place.failure();
  const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (descriptor < 0) return core::Failure{system_text(errno)};
  int error = 0;
  if (connect(descriptor, reinterpret_cast<const sockaddr*>(&place.value()), sizeof(sockaddr_in)) != 0) error = errno;
  if (error == EINPROGRESS) {
    pollfd waiting = {descriptor, POLLOUT, 0};
    error = ETIMEDOUT;
    socklen_t size = sizeof error;
    if (poll(&waiting, 1, timeout_ms) == 1) getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &size);
  }
  if (error == 0) return descriptor;
  close(descriptor);
  return core::Failure{system_text(error)};
}

core::Result<bool> is_own_address(const std::string& address) {
  const auto place = resolved(address, 0);
  if (!place) return place.failure();
  const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool own = bind(descriptor, reinterpret_cast<const sockaddr*>(&place.value()), sizeof(sockaddr_in)) == 0;
  if (descriptor >= 0) close(descriptor);
  return own;
}

}  // namespace runner::launch

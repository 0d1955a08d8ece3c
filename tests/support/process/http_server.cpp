#include "tests/support/process/http_server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <string_view>
#include <utility>

namespace tests {
namespace {

/// The next request of a connection; nothing when the other side has closed it.
std::optional<HttpRequest> read_request(int connection, std::string& buffer) {
  const auto more = [&] {
    char some[16'384];
    const ssize_t got = recv(connection, some, sizeof some, 0);
    if (got > 0) buffer.append(some, static_cast<std::size_t>(got));
    return got > 0;
  };
  std::size_t end;
  while ((end = buffer.find("\r\n\r\n")) == std::string::npos) {
    if (!more()) return std::nullopt;
  }
  HttpRequest request;
  const auto space = buffer.find(' ');
  request.method = buffer.substr(0, space);
  request.path = buffer.substr(space + 1, buffer.find(' ', space + 1) - space - 1);
  for (std::size_t at = buffer.find("\r\n"); at < end;) {
    const auto stop = buffer.find("\r\n", at + 2), colon = buffer.find(": ", at);
    std::string name = buffer.substr(at + 2, colon - at - 2);
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    request.headers[name] = buffer.substr(colon + 2, stop - colon - 2);
    at = stop;
  }
  const auto length = request.headers.find("content-length");
  const std::size_t bytes = length == request.headers.end() ? 0 : std::stoul(length->second);
  while (buffer.size() < end + 4 + bytes) {
    if (!more()) return std::nullopt;
  }
  request.body = buffer.substr(end + 4, bytes);
  buffer.erase(0, end + 4 + bytes);
  return request;
}

std::string text_of(const HttpReply& reply, bool head_only) {
  std::string text = "HTTP/1.1 " + std::to_string(reply.status) +
                     " So\r\nContent-Length: " + std::to_string(reply.body.size()) + "\r\n";
  for (const std::string& header : reply.headers) text += header + "\r\n";
  text += "\r\n";
  if (head_only) return text;
  return text + reply.body.substr(0, reply.cut_after.value_or(reply.body.size()));
}

bool send_all(int connection, std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = send(connection, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

}  // namespace

HttpServer::HttpServer(std::function<HttpReply(const HttpRequest&)> handle) : handle_(std::move(handle)) {
  accepting_ = std::async(std::launch::async, [this] { accept_all(); });
}

HttpServer::~HttpServer() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    for (const int connection : open_) shutdown(connection, SHUT_RDWR);
  }
  gone_.notify_all();
  shutdown(socket_.descriptor(), SHUT_RDWR);
  accepting_.wait();
  serving_.clear();  // waits
}

void HttpServer::accept_all() {
  for (;;) {
    const int connection = accept4(socket_.descriptor(), nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) return;
    const std::lock_guard lock(mutex_);
    if (ends_) {
      close(connection);
      return;
    }
    open_.insert(connection);
    serving_.push_back(std::async(std::launch::async, [this, connection] { serve(connection); }));
  }
}

void HttpServer::serve(int connection) {
  std::string buffer;
  while (const auto request = read_request(connection, buffer)) {
    HttpReply reply;
    {
      const std::lock_guard lock(handling_);
      reply = handle_(*request);
    }
    if (reply.fate == HttpReply::Fate::kHang) hang();
    if (reply.fate != HttpReply::Fate::kAnswer) break;
    const std::string answer = text_of(reply, request->method == "HEAD");
    if (!send_all(connection, answer) || reply.cut_after) break;
  }
  const std::lock_guard lock(mutex_);
  open_.erase(connection);
  close(connection);
}

void HttpServer::hang() {
  std::unique_lock lock(mutex_);
  gone_.wait(lock, [this] { return ends_; });
}

}  // namespace tests

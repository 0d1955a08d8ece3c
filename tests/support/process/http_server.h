#pragma once

#include <condition_variable>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runner/core/platform/listening_socket.h"

namespace tests {

struct HttpRequest {
  std::string method, path, body;              ///< `path` with its query, as it was sent
  std::map<std::string, std::string> headers;  ///< names in lower case
};

struct HttpReply {
  int status = 200;
  std::string body;
  enum class Fate { kAnswer, kDrop, kHang } fate = Fate::kAnswer;  ///< kHang: no answer before the server is gone
  std::vector<std::string> headers = {};                           ///< `Name: value`
  std::optional<std::size_t> cut_after = {};  ///< the connection is lost after this much of the body
};

/// A server on the loopback for one test. Its requests are handled one after the other, each on its connection's
/// thread; what hangs does not keep the others.
class HttpServer {
 public:
  explicit HttpServer(std::function<HttpReply(const HttpRequest&)> handle);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::string url() const { return "http://127.0.0.1:" + std::to_string(socket_.port()); }

 private:
  void accept_all();
  void serve(int connection);
  void hang();

  std::function<HttpReply(const HttpRequest&)> handle_;
  runner::core::ListeningSocket socket_;
  std::mutex mutex_, handling_;
  std::condition_variable gone_;
  bool ends_ = false;
  std::set<int> open_;
  std::vector<std::future<void>> serving_;
  std::future<void> accepting_;
};

}  // namespace tests

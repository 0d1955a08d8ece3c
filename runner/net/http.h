#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runner/core/error.h"

namespace runner::net {

/// No response: the connection failed, was lost, or could not be made.
class NoResponse : public core::RunError {
 public:
  /// kAddress: the address is wrong, or what is there: a response beyond its limit. To try again helps kPasses alone.
  enum class Cause { kPasses, kAddress, kCertificate, kNoLibrary };
  NoResponse(Cause cause, const std::string& message, int code, std::string reason, std::string hint = "")
      : RunError(message, std::move(hint)), cause_(cause), code_(code), reason_(std::move(reason)) {}

  Cause cause() const { return cause_; }
  bool passes() const { return cause_ == Cause::kPasses; }
  int code() const { return code_; }                     ///< libcurl's CURLcode
  const std::string& reason() const { return reason_; }  ///< in libcurl's words

 private:
  Cause cause_;
  int code_;
  std::string reason_;
};

struct HttpOptions {
  double timeout_s = 120;         ///< of one exchange; of one in which no byte moves where a file is sent or received
  double bytes_per_s_min = 1000;  ///< of what is received in pieces, over each minute
  std::function<double()> now = {};      ///< seconds, for that minute; empty: the machine's clock
  std::string user = {}, password = {};  ///< Basic
  std::string token = {};                ///< Bearer; goes before `user`
  bool verify_tls = true;
  std::string ca_file = {};             ///< PEM; "": the machine's own
  std::string client_certificate = {};  ///< PEM, with its key
};

struct HttpAnswer {
  long status = 0;
  std::string body;
  std::map<std::string, std::string> headers = {};  ///< names in lower case; the last of several with one name
  bool ok() const { return status >= 200 && status < 300; }
  /// "" when the response has none.
  std::string header(const std::string& name) const;
};

struct HttpRequest {
  std::string method = "GET";
  std::string url;
  std::vector<std::string> headers = {};  ///< `Name: value`
  std::string body = {};
  std::string file = {};  ///< the path of what is sent instead of `body`
  bool once = false;      ///< over a new connection: curl sends by itself again what one that was kept has lost
  /// Gets the body of a response with 200 or 206, piece by piece, instead of HttpAnswer::body; `answer` has status and
  /// headers. What it throws ends the exchange and reaches the caller.
  std::function<void(const HttpAnswer& answer, std::string_view piece)> receive = {};
};

/// A client with persistent connections. Takes proxies from the environment, like curl, and follows no redirect. Used
/// by one thread.
class Http {
 public:
  explicit Http(HttpOptions options);
  ~Http();
  Http(const Http&) = delete;
  Http& operator=(const Http&) = delete;

  /// Blocks for up to the time limit. Returns any response; NoResponse without one. A body that is not received in
  /// pieces has at most 64 MB. RunError when `file` cannot be read.
  HttpAnswer send(const HttpRequest& request);

 private:
  struct Connection;
  HttpOptions options_;
  std::unique_ptr<Connection> connection_;
};

/// For a part of a URL: all but letters, digits and -._~ as %XX; `keep` stays as well.
std::string url_encoded(std::string_view text, std::string_view keep = "");

/// A URL without user name and password, for messages.
std::string without_credentials(const std::string& url);

}  // namespace runner::net

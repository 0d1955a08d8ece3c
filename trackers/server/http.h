#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace trackers {

struct HttpOptions {
  double timeout_s = 120;      ///< of one exchange; of one in which no byte moves where a file is sent
  std::string user, password;  ///< Basic
  std::string token;           ///< Bearer; goes before `user`
  bool verify_tls = true;
  std::string ca_file;             ///< PEM; "": the machine's own
  std::string client_certificate;  ///< PEM, with its key
};

struct HttpRequest {
  std::string method = "GET";
  std::string url;
  std::vector<std::string> headers = {};  ///< `Name: value`
  std::string body = {};
  std::string file = {};  ///< the path of what is sent instead of `body`
  bool once = false;      ///< over a new connection: curl sends by itself again what one that was kept has lost
};

struct HttpAnswer {
  long status = 0;
  std::string body;
  bool ok() const { return status >= 200 && status < 300; }
};

/// A client of one server with persistent connections. Takes proxies from the environment, like curl. Used by one
/// thread.
class Http {
 public:
  explicit Http(HttpOptions options);
  ~Http();
  Http(const Http&) = delete;
  Http& operator=(const Http&) = delete;

  /// Blocks for up to the time limit. Returns any response. TrackerError without one: kRetry, or kPause if the
  /// address or a certificate is to blame.
  HttpAnswer send(const HttpRequest& request);

 private:
  struct Connection;
  HttpOptions options_;
  std::unique_ptr<Connection> connection_;
};

/// Returns a successful response, otherwise throws TrackerError: 408, 429 and 5xx are temporary, 401, 403 and a
/// redirection need the user, and any other 4xx concerns these data.
/// `who` begins the message: `MLflow at http://...`.
const HttpAnswer& require_success(const HttpAnswer& answer, const std::string& who);

/// For a part of a URL: all but letters, digits and -._~ as %XX; `keep` stays as well.
std::string url_encoded(std::string_view text, std::string_view keep = "");

/// A URL without user name and password, for messages.
std::string without_credentials(const std::string& url);

}  // namespace trackers

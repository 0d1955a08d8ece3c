#pragma once

#include <string>

#include "runner/net/http.h"

namespace trackers {

using runner::net::HttpAnswer;
using runner::net::HttpOptions;
using runner::net::HttpRequest;
using runner::net::url_encoded;
using runner::net::without_credentials;

/// A client of one server, for trackers.
class Http {
 public:
  explicit Http(HttpOptions options) : client_(std::move(options)) {}

  /// Blocks for up to the time limit. Returns any response. TrackerError without one: kRetry, or kPause if the
  /// address or a certificate is to blame.
  HttpAnswer send(const HttpRequest& request);

 private:
  runner::net::Http client_;
};

/// Returns a successful response, otherwise throws TrackerError: 408, 429 and 5xx are temporary, 401, 403 and a
/// redirection need the user, and any other 4xx concerns these data.
/// `who` begins the message: `MLflow at http://...`.
const HttpAnswer& require_success(const HttpAnswer& answer, const std::string& who);

}  // namespace trackers

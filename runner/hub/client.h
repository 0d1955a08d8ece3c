#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "runner/core/error.h"
#include "runner/hub/answers.h"
#include "runner/hub/name.h"
#include "runner/hub/settings.h"
#include "runner/net/http.h"

namespace runner::hub {

/// An error of the Hub. `is_unreachable`: it does not respond or is overloaded, so that what is in the cache may serve.
class HubError : public core::RunError {
 public:
  HubError(const std::string& message, const std::string& hint, bool is_unreachable = false)
      : RunError(message, hint), is_unreachable_(is_unreachable) {}
  /// The name is wrong: no such repository, revision or file.
  static HubError wrong_name(const std::string& message, const std::string& hint) {
    return HubError(message, hint, core::kExitUsage);
  }
  bool is_unreachable() const { return is_unreachable_; }

 protected:
  HubError(const std::string& message, const std::string& hint, core::ExitCode code)
      : RunError(message, hint, code), is_unreachable_(false) {}

 private:
  bool is_unreachable_;
};

/// How the client waits before a retry; seconds.
using Wait = std::function<void(double)>;

/// Asks the Hub, with the token, which goes to the endpoint alone; redirects are followed by hand. Temporary errors are
/// retried. All throw HubError. Used by one thread.
class Client {
 public:
  static constexpr int kAttemptsMax = 5;

  /// RunError when the token is not one.
  Client(const Settings& settings, Wait wait);

  /// The commit of a revision and its files.
  Listing list(const Name& name, int attempts = kAttemptsMax);
  FileInfo describe(const Name& name, const std::string& commit, const std::string& file);
  /// Receives this range of the file once; the response says whether it is the range (206) or the whole file (200).
  /// `receive` may throw. Returns the final response, whatever its status; NoResponse when the connection is lost.
  net::HttpAnswer get(const Name& name, const std::string& commit, const std::string& file, const Range& range,
                      const std::function<void(const net::HttpAnswer&, std::string_view)>& receive);
  /// What to throw for a response or a lost connection that no retry may follow.
  HubError refusal(const Name& name, const net::HttpAnswer& answer) const;
  HubError unreachable(const net::NoResponse& error) const;

  const Settings& settings() const { return settings_; }

 private:
  std::string address(const Name& name, const std::string& kind, const std::string& revision) const;
  /// One request and its redirects. `to_storage`: also those to other hosts.
  net::HttpAnswer follow(net::HttpRequest request, bool to_storage);
  net::HttpAnswer follow_with_retries(const net::HttpRequest& request, const Name& name, int attempts);

  Settings settings_;
  Wait wait_;
  std::string token_;
  net::Http http_;
};

}  // namespace runner::hub

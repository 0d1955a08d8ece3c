#pragma once

#include <string>

#include "runner/core/node.h"
#include "trackers/server/aim_tree.h"
#include "trackers/server/http.h"

namespace trackers {

/// The protocol of `aim server`: a client holds objects in the server and calls their methods. Every call blocks and
/// throws TrackerError.
///
/// We choose the names of clients and their objects, so opening the same again replaces a dead client.
class AimServer {
 public:
  /// `url` without a slash at the end; `client`: letters, digits and `-`.
  AimServer(std::string url, HttpOptions options, std::string client);

  /// `3.29.1`; kPause when it is not an Aim server, or too old.
  std::string version();
  void connect();
  void open(const std::string& resource, const std::string& type, const runner::core::Node& arguments);
  void call(const std::string& resource, const std::string& method, const AimTree& arguments);
  void close(const std::string& resource);
  void disconnect();

  std::string who() const { return "Aim at " + without_credentials(url_); }

 private:
  HttpAnswer get(const std::string& path);
  HttpAnswer post(const std::string& what, const std::string& resource, const char* key, const std::string& value,
                  const AimTree& arguments);
  void require(const HttpAnswer& answer, const std::string& what) const;

  const std::string url_;
  Http http_;
  const std::string client_;
};

}  // namespace trackers

#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "trackers/io/tracker_data.h"
#include "trackers/server/http.h"

namespace trackers {

/// An MLflow server's REST interface. Every call blocks and throws TrackerError.
class MlflowServer {
 public:
  /// `uri` without a slash at the end.
  MlflowServer(std::string uri, HttpOptions options);

  /// The response of api/2.0/mlflow/PATH. `query` begins with `?`.
  nlohmann::json get(const std::string& path, const std::string& query);
  nlohmann::json post(const std::string& path, const std::string& body);
  /// The same without status checks, if an error is a valid response.
  HttpAnswer ask(const HttpRequest& request) { return http_.send(request); }
  nlohmann::json success(const HttpAnswer& answer) const;
  HttpRequest get_request(const std::string& path, const std::string& query) const;
  HttpRequest post_request(const std::string& path, const std::string& body) const;

  /// Uploads an artifact of the run with this `artifact_uri`: `content`, or the file at `file` if given. kReject when
  /// only MLflow's own client reaches that location.
  void put_artifact(const std::string& artifact_uri, const std::string& path, const std::string& content,
                    const std::string& file = "");

  /// For a response that is not MLflow's.
  TrackerError not_mlflow() const;
  std::string who() const { return "MLflow at " + without_credentials(uri_); }

 private:
  const std::string uri_;
  Http http_;
};

/// Connection settings from MLFLOW_TRACKING_USERNAME and MLflow's other variables.
HttpOptions mlflow_http_options();

/// `RESOURCE_DOES_NOT_EXIST` and the like; "" if the response has none.
std::string mlflow_error_code(const HttpAnswer& answer);

}  // namespace trackers

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

  /// What api/2.0/mlflow/PATH answers. `query` begins with `?`.
  nlohmann::json get(const std::string& path, const std::string& query);
  nlohmann::json post(const std::string& path, const std::string& body);
  /// The same without a judgement, where an error is one of the answers.
  HttpAnswer ask(const HttpRequest& request) { return http_.send(request); }
  nlohmann::json success(const HttpAnswer& answer) const;
  HttpRequest get_request(const std::string& path, const std::string& query) const;
  HttpRequest post_request(const std::string& path, const std::string& body) const;

  /// An artifact of the run that keeps its own at `artifact_uri`: `content`, or the file at `file` when that is given.
  /// kLeaveOut where they lie in a place that only MLflow's own client reaches.
  void put_artifact(const std::string& artifact_uri, const std::string& path, const std::string& content,
                    const std::string& file = "");

  /// For an answer that is none of MLflow's.
  TrackerError not_mlflow() const;
  std::string who() const { return "MLflow at " + without_credentials(uri_); }

 private:
  const std::string uri_;
  Http http_;
};

/// How MLFLOW_TRACKING_USERNAME and the other variables of MLflow say that its server is spoken to.
HttpOptions mlflow_http_options();

/// `RESOURCE_DOES_NOT_EXIST` and the like; "" where the answer names none.
std::string mlflow_error_code(const HttpAnswer& answer);

}  // namespace trackers

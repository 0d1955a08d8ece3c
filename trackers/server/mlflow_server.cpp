#include "trackers/server/mlflow_server.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "runner/core/platform/files.h"
#include "runner/core/units.h"
#include "runner/net/environment.h"

namespace trackers {
namespace {

using runner::net::environment;
using runner::net::environment_flag;

using nlohmann::json;
using Remedy = TrackerError::Remedy;

constexpr const char* kProxy = "mlflow-artifacts:";

/// Straight into a folder that the server and this machine share.
void put_into_folder(const std::string& folder, const std::string& path, const std::string& content,
                     const std::string& file) {
  const std::filesystem::path target = std::filesystem::path(folder) / path;
  const auto made = runner::core::make_folders(target.parent_path().string());
  if (!made) throw TrackerError(Remedy::kReject, made.failure().message, made.failure().hint);
  if (file.empty()) {
    const auto written = runner::core::write_file_atomic(target.string(), content);
    if (!written) throw TrackerError(Remedy::kRetry, written.failure().message, written.failure().hint);
    return;
  }
  std::error_code error;
  std::filesystem::copy_file(file, target, std::filesystem::copy_options::overwrite_existing, error);
  if (error) throw TrackerError(Remedy::kReject, "cannot copy " + file + ": " + error.message());
}

}  // namespace

MlflowServer::MlflowServer(std::string uri, HttpOptions options) : uri_(std::move(uri)), http_(std::move(options)) {}

HttpRequest MlflowServer::get_request(const std::string& path, const std::string& query) const {
  return {"GET", uri_ + "/api/2.0/mlflow/" + path + query};
}

HttpRequest MlflowServer::post_request(const std::string& path, const std::string& body) const {
  return {"POST", uri_ + "/api/2.0/mlflow/" + path, {"Content-Type: application/json"}, body};
}

json MlflowServer::get(const std::string& path, const std::string& query) {
  return success(ask(get_request(path, query)));
}

json MlflowServer::post(const std::string& path, const std::string& body) {
  return success(ask(post_request(path, body)));
}

json MlflowServer::success(const HttpAnswer& answer) const {
  const json read = json::parse(require_success(answer, who()).body, nullptr, /*allow_exceptions=*/false);
  if (read.is_object()) return read;
  throw not_mlflow();
}

TrackerError MlflowServer::not_mlflow() const {
  return {Remedy::kPause, who() + " is not an MLflow server", "check the address"};
}

void MlflowServer::put_artifact(const std::string& artifact_uri, const std::string& path, const std::string& content,
                                const std::string& file) {
  const auto scheme = artifact_uri.find(':');
  if (artifact_uri.starts_with("file://")) return put_into_folder(artifact_uri.substr(7), path, content, file);
  if (scheme == std::string::npos) return put_into_folder(artifact_uri, path, content, file);
  if (!artifact_uri.starts_with(kProxy)) {
    throw TrackerError(Remedy::kReject,
                       who() + " keeps artifacts at " + artifact_uri.substr(0, scheme) + ":, where only its own reach",
                       "start it with --artifacts-destination, so that they go through the server");
  }
  std::string place = artifact_uri.substr(std::string(kProxy).size());
  std::string server = uri_;
  if (place.starts_with("//")) {  // a server of its own for artifacts
    const auto end = place.find('/', 2);
    server = uri_.substr(0, uri_.find(':') + 1) + place.substr(0, end);
    place = end == std::string::npos ? "" : place.substr(end);
  }
  while (place.starts_with("/")) place.erase(0, 1);
  const std::string url = server + "/api/2.0/mlflow-artifacts/artifacts/" + url_encoded(place + "/" + path, "/");
  const HttpAnswer answer = ask({"PUT", url, {"Content-Type: application/octet-stream"}, content, file});
  if (answer.status == 503 && answer.body.find("--serve-artifacts") != std::string::npos) {
    throw TrackerError(Remedy::kReject, who() + " does not accept artifacts", "start it with --serve-artifacts");
  }
  require_success(answer, who());
}

HttpOptions mlflow_http_options() {
  const auto said = [](const char* variable) { return environment(variable).value_or(""); };
  HttpOptions options;
  options.user = said("MLFLOW_TRACKING_USERNAME");
  options.password = said("MLFLOW_TRACKING_PASSWORD");
  options.token = said("MLFLOW_TRACKING_TOKEN");
  options.verify_tls = !environment_flag("MLFLOW_TRACKING_INSECURE_TLS");
  options.ca_file = said("MLFLOW_TRACKING_SERVER_CERT_PATH");
  options.client_certificate = said("MLFLOW_TRACKING_CLIENT_CERT_PATH");
  options.timeout_s = runner::core::parse_duration_s(said("MLFLOW_HTTP_REQUEST_TIMEOUT")).value_or(options.timeout_s);
  return options;
}

std::string mlflow_error_code(const HttpAnswer& answer) {
  const json read = json::parse(answer.body, nullptr, /*allow_exceptions=*/false);
  const auto code = read.is_object() ? read.find("error_code") : read.end();
  return code != read.end() && code->is_string() ? code->get<std::string>() : "";
}

}  // namespace trackers

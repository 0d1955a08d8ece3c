#include "trackers/server/aim_server.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "runner/core/picture/base64.h"
#include "runner/core/text/utf8.h"
#include "trackers/io/tracker_data.h"

namespace trackers {
namespace {

using nlohmann::json;
using runner::core::Node;
using Remedy = TrackerError::Remedy;

constexpr long kException = 400;  // something was thrown there

}  // namespace

AimServer::AimServer(std::string url, HttpOptions options, std::string client)
    : url_(std::move(url)), http_(std::move(options)), client_(std::move(client)) {}

std::string AimServer::version() {
  const HttpAnswer answer = get("/client/get-version/");
  if (answer.status != 404) require_success(answer, who());
  const json read = json::parse(answer.body, nullptr, /*allow_exceptions=*/false);
  if (answer.ok() && read.is_object() && read.contains("version") && read["version"].is_string()) {
    return read["version"];
  }
  throw TrackerError(Remedy::kPause, who() + " is not an Aim server", "use the address of an `aim server`");
}

void AimServer::connect() { require(get("/client/connect/" + client_ + "/"), "connect"); }

void AimServer::open(const std::string& resource, const std::string& type, const Node& arguments) {
  require(post("get-resource", resource, "resource_type", type, AimTree().add("", arguments)), type);
}

void AimServer::call(const std::string& resource, const std::string& method, const AimTree& arguments) {
  require(post("read-instruction", resource, "method_name", method, arguments), method);
}

void AimServer::close(const std::string& resource) {
  require(get("/tracking/" + client_ + "/release-resource/" + resource + "/"), "release");
}

void AimServer::disconnect() { require(get("/client/disconnect/" + client_ + "/"), "disconnect"); }

HttpAnswer AimServer::get(const std::string& path) { return http_.send({"GET", url_ + path}); }

HttpAnswer AimServer::post(const std::string& what, const std::string& resource, const char* key,
                           const std::string& value, const AimTree& arguments) {
  const json body = {{"resource_handler", resource}, {key, value}, {"args", runner::core::base64(arguments.bytes())}};
  return http_.send(
      {"POST", url_ + "/tracking/" + client_ + "/" + what + "/", {"Content-Type: application/json"}, body.dump()});
}

// Exceptions there concern the server (a full disk, a restart that lost our handles), not the data sent, which it
// accepts unchecked.
void AimServer::require(const HttpAnswer& answer, const std::string& what) const {
  if (answer.status != kException) {
    require_success(answer, who());
    return;
  }
  const json read = json::parse(answer.body, nullptr, /*allow_exceptions=*/false);
  const json thrown = read.is_object() ? read.value("exception", json::object()) : json::object();
  const std::string words =
      thrown.is_object() ? thrown.value("class_name", "") + ": " + thrown.value("message", "") : "";
  throw TrackerError(Remedy::kRetry, who() + " fails in " + what + ": " + runner::core::quote(words, 300));
}

}  // namespace trackers

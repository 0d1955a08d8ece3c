#include "runner/hub/client.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "runner/core/text/utf8.h"
#include "runner/core/units.h"

namespace runner::hub {
namespace {

using net::HttpAnswer;
using net::HttpRequest;
using net::NoResponse;

constexpr double kTimeout_s = 30;  // of an answer; of one in which no byte moves for a file
constexpr int kRedirectsMax = 10;
constexpr double kPauseMax_s = 300;
constexpr std::size_t kWordsMax = 200;  // of a server's response, in a message
constexpr std::size_t kEtagMax = 128;

/// Scheme, host and port of a URL, in lower case; "" if it has none. The port of the scheme is left out.
std::string origin_of(const std::string& url) {
  const auto begin = url.find("://");
  if (begin == std::string::npos) return "";
  std::string host = url.substr(begin + 3, url.find_first_of("/?#", begin + 3) - begin - 3);
  if (const auto at = host.rfind('@'); at != std::string::npos) host.erase(0, at + 1);
  std::string origin = url.substr(0, begin + 3) + host;
  std::transform(origin.begin(), origin.end(), origin.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const char* usual : {"http://", "https://"}) {
    const std::string port = std::string(usual) == "http://" ? ":80" : ":443";
    if (origin.starts_with(usual) && origin.ends_with(port)) origin.resize(origin.size() - port.size());
  }
  return origin;
}

/// A `Location` against the URL that gave it.
std::string joined_url(const std::string& base, const std::string& location) {
  if (location.find("://") != std::string::npos && location.find("://") < location.find_first_of("/?#"))
    return location;
  const auto scheme = base.find("://");
  if (location.starts_with("//")) return base.substr(0, scheme + 1) + location;
  const auto path = base.find('/', scheme + 3);
  const std::string host = base.substr(0, path);
  if (location.starts_with('/')) return host + location;
  const std::string folder = path == std::string::npos ? "/" : base.substr(path, base.find_first_of("?#") - path);
  return host + folder.substr(0, folder.rfind('/') + 1) + location;
}

bool is_redirect(const HttpAnswer& answer) {
  return (answer.status == 301 || answer.status == 302 || answer.status == 303 || answer.status == 307 ||
          answer.status == 308) &&
         !answer.header("location").empty();
}

std::optional<std::int64_t> number_of(const std::string& text) {
  std::int64_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc() || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

/// `W/"abc"` and `"abc"` are abc.
std::string plain_etag(std::string etag) {
  if (etag.starts_with("W/")) etag.erase(0, 2);
  if (etag.size() >= 2 && etag.front() == '"' && etag.back() == '"') etag = etag.substr(1, etag.size() - 2);
  return etag;
}

bool is_file_name(const std::string& etag) {
  return !etag.empty() && etag.size() <= kEtagMax && etag.front() != '.' &&
         std::all_of(etag.begin(), etag.end(),
                     [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.'; });
}

std::string with_tree(const Settings& settings, const Name& name) {
  return net::without_credentials(settings.endpoint) + "/" + (name.is_dataset ? "datasets/" : "") + name.repository();
}

}  // namespace

bool is_temporary(long status) {
  return status == 408 || status == 429 || status == 500 || status == 502 || status == 503 || status == 504;
}

std::optional<double> pause_before(int attempt, const HttpAnswer* answer) {
  const auto asked = answer != nullptr ? number_of(answer->header("retry-after")) : std::nullopt;
  if (asked) return static_cast<double>(*asked) > kPauseMax_s ? std::nullopt : std::optional<double>(*asked);
  return static_cast<double>(1 << std::min(attempt, 5));
}

core::Result<std::string> redirect_target(const std::string& from, const std::string& location) {
  const std::string next = joined_url(from, location);
  constexpr const char* kHint = "check HF_ENDPOINT and the proxy";
  if (!next.starts_with("https://") && !next.starts_with("http://")) {
    return core::Failure{" redirects to an address that is neither http nor https", kHint};
  }
  if (from.starts_with("https://") && !next.starts_with("https://")) {
    return core::Failure{" redirects from https to http, which anyone on the way could change", kHint};
  }
  return next;
}

Client::Client(const Settings& settings, Wait wait)
    : settings_(settings), wait_(std::move(wait)), token_(read_token().value()), http_({.timeout_s = kTimeout_s}) {}

std::string Client::address(const Name& name, const std::string& kind, const std::string& revision) const {
  const std::string repository = (name.is_dataset ? "datasets/" : "") + name.repository();
  const std::string encoded = net::url_encoded(revision);
  if (kind == "resolve") return settings_.endpoint + "/" + repository + "/resolve/" + encoded;
  return settings_.endpoint + "/api/" + (name.is_dataset ? "" : "models/") + repository + "/revision/" + encoded;
}

HttpAnswer Client::follow(HttpRequest request, bool to_storage) {
  const std::vector<std::string> headers = request.headers;
  const std::string home = origin_of(settings_.endpoint);
  for (int redirects = 0; redirects <= kRedirectsMax; ++redirects) {
    request.headers = headers;
    request.headers.emplace_back("Accept-Encoding: identity");
    if (!token_.empty() && origin_of(request.url) == home) {
      request.headers.push_back("Authorization: Bearer " + token_);
    }
    HttpAnswer answer = http_.send(request);
    if (!is_redirect(answer)) return answer;
    const std::string next = joined_url(request.url, answer.header("location"));
    if (!to_storage && origin_of(next) != home) return answer;
    const auto target = redirect_target(request.url, next);
    if (!target) throw HubError(settings_.host() + target.failure().message, target.failure().hint);
    request.url = next;
  }
  throw HubError(settings_.host() + " redirects more than " + std::to_string(kRedirectsMax) + " times",
                 "check HF_ENDPOINT and the proxy");
}

HttpAnswer Client::follow_with_retries(const HttpRequest& request, const Name& name, int attempts) {
  for (int attempt = 0;; ++attempt) {
    std::optional<double> pause;
    const bool is_last = attempt + 1 >= attempts;
    try {
      HttpAnswer answer = follow(request, /*to_storage=*/false);
      if (answer.ok() || is_redirect(answer)) return answer;
      pause = is_temporary(answer.status) ? pause_before(attempt, &answer) : std::nullopt;
      if (is_last || !pause) throw refusal(name, answer);
    } catch (const NoResponse& error) {
      pause = pause_before(attempt, nullptr);
      if (is_last || !error.passes()) throw unreachable(error);
    }
    wait_(*pause);
  }
}

Listing Client::list(const Name& name, int attempts) {
  HttpRequest request;
  request.url = address(name, "api", name.revision);
  const HttpAnswer answer = follow_with_retries(request, name, attempts);
  if (!answer.ok()) throw refusal(name, answer);
  const auto parsed = nlohmann::json::parse(answer.body, nullptr, /*allow_exceptions=*/false);
  Listing listing;
  if (parsed.is_object() && parsed.contains("sha") && parsed["sha"].is_string()) listing.commit = parsed["sha"];
  const auto siblings = parsed.is_object() ? parsed.find("siblings") : parsed.end();
  if (!is_commit(listing.commit) || !parsed.is_object() || siblings == parsed.end() || !siblings->is_array()) {
    throw HubError(
        settings_.host() + " does not answer as the Hugging Face Hub does: no commit and files of " + name.text(),
        "check HF_ENDPOINT and the proxy");
  }
  for (const auto& sibling : *siblings) {
    if (!sibling.is_object() || !sibling.contains("rfilename") || !sibling["rfilename"].is_string()) continue;
    std::string file = sibling["rfilename"];
    if (is_safe_path(file)) listing.files.push_back(std::move(file));
  }
  return listing;
}

FileInfo Client::describe(const Name& name, const std::string& commit, const std::string& file) {
  HttpRequest request;
  request.method = "HEAD";
  request.url = address(name, "resolve", commit) + "/" + net::url_encoded(file, "/");
  const HttpAnswer answer = follow_with_retries(request, name, kAttemptsMax);
  FileInfo info;
  const std::string linked = answer.header("x-linked-etag"), size = answer.header("x-linked-size");
  info.etag = plain_etag(linked.empty() ? answer.header("etag") : linked);
  const std::string told = !size.empty() ? size : is_redirect(answer) ? "" : answer.header("content-length");
  info.bytes = number_of(told).value_or(-1);
  const std::string from = answer.header("x-repo-commit");
  if (!is_file_name(info.etag) || (!from.empty() && from != commit)) {
    throw HubError(settings_.host() + " does not say what " + core::quote(file) + " of " + name.text(commit) + " is",
                   "check HF_ENDPOINT and the proxy: the headers ETag and X-Repo-Commit must come through");
  }
  return info;
}

HttpAnswer Client::get(const Name& name, const std::string& commit, const std::string& file, std::int64_t offset,
                       const std::function<void(const HttpAnswer&, std::string_view)>& receive) {
  HttpRequest request;
  request.url = address(name, "resolve", commit) + "/" + net::url_encoded(file, "/");
  if (offset > 0) request.headers.push_back("Range: bytes=" + std::to_string(offset) + "-");
  request.receive = receive;
  return follow(request, /*to_storage=*/true);
}

HubError Client::unreachable(const NoResponse& error) const {
  std::string hint = error.hint();
  if (error.cause() == NoResponse::Cause::kCertificate) {
    hint = "install the certificates of its authority on this machine (package ca-certificates)";
  } else if (hint.empty()) {
    hint = "check the network, HTTPS_PROXY and HF_ENDPOINT; HF_HUB_OFFLINE=1 uses what is in the cache";
  }
  return HubError(error.what(), hint, error.passes());
}

HubError Client::refusal(const Name& name, const HttpAnswer& answer) const {
  const std::string code = answer.header("x-error-code"), host = settings_.host();
  const std::string status = std::to_string(answer.status), page = with_tree(settings_, name);
  const std::string tokens = net::without_credentials(settings_.endpoint) + "/settings/tokens";
  Name whole = name;
  whole.file.clear();
  const std::string what = whole.text();
  if (code == "GatedRepo" || answer.status == 403) {
    return {"access to " + what + " is restricted: " + host + " answers " + status,
            "accept its terms at " + page +
                (token_.empty() ? ", and set HF_TOKEN to a token of that account from " + tokens
                                : " with the account of your token, which must allow it")};
  }
  if (answer.status == 401 && !token_.empty()) {
    return {host + " refuses the token for " + what + ": it answers 401",
            "check the name, or set HF_TOKEN to a valid token from " + tokens};
  }
  if (answer.status == 401) {
    return {what + " is private or does not exist: " + host + " answers 401",
            "check the name; for a private repository, set HF_TOKEN to a token from " + tokens};
  }
  if (code == "RevisionNotFound" || (answer.status == 404 && code.empty() && name.revision != "main")) {
    return HubError::wrong_name(name.repository() + " has no revision " + core::quote(name.revision) + " at " + host,
                                page + "/tree/main lists branches and tags");
  }
  if (answer.status == 404) {
    return HubError::wrong_name(
        host + " has no " + (name.is_dataset ? "data set " : "model ") + name.repository(),
        name.is_dataset ? "check the name; a model is hf://OWNER/NAME"
                        : "check the name; a data set is hf://datasets/OWNER/NAME, and a private one needs HF_TOKEN");
  }
  const std::string words = answer.body.empty() ? "" : ": " + core::quote(answer.body, kWordsMax);
  if (is_temporary(answer.status)) {
    const std::string after = answer.header("retry-after");
    return {
        host + " is overloaded: it answers " + status + (token_.empty() && answer.status == 429 ? "" : words),
        (number_of(after) ? "try again in " + core::format_duration(static_cast<double>(*number_of(after)))
                          : std::string("try again later")) +
            (answer.status == 429 && token_.empty() ? "; requests with a token (HF_TOKEN) have a higher limit" : ""),
        true};
  }
  return {host + " answers " + status + " for " + what + words, "check HF_ENDPOINT and the proxy"};
}

}  // namespace runner::hub

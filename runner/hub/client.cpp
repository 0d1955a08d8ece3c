#include "runner/hub/client.h"

#include <utility>

#include "runner/core/text/utf8.h"

namespace runner::hub {
namespace {

using net::HttpAnswer;
using net::HttpRequest;
using net::NoResponse;

constexpr double kTimeout_s = 30;  // of an answer; of one in which no byte moves for a file
constexpr const char* kRedirectHint = "check HF_ENDPOINT and the proxy";
constexpr std::size_t kWordsMax = 200;  // of a server's response, in a message

std::string with_tree(const Settings& settings, const Name& name) {
  return net::without_credentials(settings.endpoint) + "/" + (name.is_dataset ? "datasets/" : "") + name.repository();
}

}  // namespace

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
    if (!target) throw HubError(settings_.host() + target.failure().message, kRedirectHint);
    request.url = next;
  }
  throw HubError(settings_.host() + " redirects more than " + std::to_string(kRedirectsMax) + " times", kRedirectHint);
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
  auto listing = parse_listing(answer.body);
  if (!listing) {
    throw HubError(
        settings_.host() + " does not answer as the Hugging Face Hub does: no commit and files of " + name.text(),
        "check HF_ENDPOINT and the proxy");
  }
  return *std::move(listing);
}

FileInfo Client::describe(const Name& name, const std::string& commit, const std::string& file) {
  HttpRequest request;
  request.method = "HEAD";
  request.url = address(name, "resolve", commit) + "/" + net::url_encoded(file, "/");
  const HttpAnswer answer = follow_with_retries(request, name, kAttemptsMax);
  auto info = parse_file_info(answer, commit);
  if (!info) {
    throw HubError(settings_.host() + " does not say what " + core::quote(file) + " of " + name.text(commit) + " is",
                   "check HF_ENDPOINT and the proxy: the headers ETag and X-Repo-Commit must come through");
  }
  return *std::move(info);
}

HttpAnswer Client::get(const Name& name, const std::string& commit, const std::string& file, const Range& range,
                       const std::function<void(const HttpAnswer&, std::string_view)>& receive) {
  HttpRequest request;
  request.url = address(name, "resolve", commit) + "/" + net::url_encoded(file, "/");
  if (const auto header = range.header()) request.headers.push_back(*header);
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
    return {
        host + " is overloaded: it answers " + status + (token_.empty() && answer.status == 429 ? "" : words),
        try_again(answer) +
            (answer.status == 429 && token_.empty() ? "; requests with a token (HF_TOKEN) have a higher limit" : ""),
        true};
  }
  return {host + " answers " + status + " for " + what + words, "check HF_ENDPOINT and the proxy"};
}

}  // namespace runner::hub

#include "trackers/server/http.h"

#include <curl/curl.h>

#include <optional>
#include <string_view>

#include "runner/core/text/utf8.h"
#include "trackers/io/tracker_data.h"

namespace trackers {
namespace {

using Remedy = TrackerError::Remedy;

constexpr std::size_t kWordsMax = 300;  // of a server's response, in a message

// A server that wants a certificate, or another one, closes the connection with an alert, which may arrive after the
// end.
constexpr const char* kWantsCertificate = "if it requires a client certificate, set client_cert_path";

bool is_cut_off(CURLcode code) {
  return code == CURLE_SSL_CONNECT_ERROR || code == CURLE_RECV_ERROR || code == CURLE_SEND_ERROR ||
         code == CURLE_GOT_NOTHING;
}

/// The hint for errors that a retry cannot fix, "" if there is none.
std::optional<std::string> way_out(CURLcode code, std::string_view words) {
  const auto says = [words](std::string_view text) { return words.find(text) != std::string_view::npos; };
  switch (code) {
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT: return "";
    case CURLE_PEER_FAILED_VERIFICATION:
      if (says("expired")) return "its certificate must be renewed; insecure_tls accepts any";
      if (says("subject name") || says("host name")) return "use the host name of its certificate";
      return "set server_cert_path to the certificates of its authority; insecure_tls accepts any";
    case CURLE_SSL_CACERT_BADFILE: return "server_cert_path must be a file of certificates (PEM)";
    case CURLE_SSL_CERTPROBLEM: return "client_cert_path must be a file with a certificate and its key (PEM)";
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_RECV_ERROR:
      if (says("wrong version number") || says("packet length")) return "check that this port uses TLS";
      if (says("alert")) return kWantsCertificate;
      return std::nullopt;
    default: return std::nullopt;
  }
}

}  // namespace

HttpAnswer Http::send(const HttpRequest& request) {
  try {
    return client_.send(request);
  } catch (const runner::net::NoResponse& error) {
    if (error.cause() == runner::net::NoResponse::Cause::kNoLibrary) {
      throw TrackerError(Remedy::kPause, error.what(), error.hint());
    }
    const auto code = static_cast<CURLcode>(error.code());
    const std::optional<std::string> hint = way_out(code, error.reason());
    throw TrackerError(hint ? Remedy::kPause : Remedy::kRetry, error.what(),
                       hint.value_or(is_cut_off(code) && request.url.starts_with("https:") ? kWantsCertificate : ""));
  } catch (const runner::core::RunError& error) {
    throw TrackerError(Remedy::kReject, error.what(), error.hint());
  }
}

const HttpAnswer& require_success(const HttpAnswer& answer, const std::string& who) {
  if (answer.ok()) return answer;
  const std::string status = who + " answers " + std::to_string(answer.status);
  const std::string words = answer.body.empty() ? "" : ": " + runner::core::quote(answer.body, kWordsMax);
  if (answer.status == 401 || answer.status == 403) {
    throw TrackerError(Remedy::kPause, status + words, "use other credentials");
  }
  if (answer.status >= 300 && answer.status < 400) {
    throw TrackerError(Remedy::kPause, status + ", a redirect", "use the address of the redirect");
  }
  const bool passes = answer.status == 408 || answer.status == 429 || answer.status >= 500;
  throw TrackerError(passes ? Remedy::kRetry : Remedy::kReject, status + words);
}

}  // namespace trackers

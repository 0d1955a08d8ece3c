#include "trackers/server/http.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "runner/core/text/utf8.h"
#include "trackers/io/tracker_data.h"
#include "trackers/server/curl.h"

namespace trackers {
namespace {

using Remedy = TrackerError::Remedy;

constexpr std::size_t kAnswerBytesMax = 64U << 20;
constexpr std::size_t kWordsMax = 300;  // of a server's response, in a message
constexpr long kConnect_ms = 10'000;

/// The file that is sent, opened.
class Upload {
 public:
  explicit Upload(const std::string& path) {
    if (path.empty()) return;
    descriptor_ = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat info = {};
    if (descriptor_ < 0 || fstat(descriptor_, &info) != 0) {
      throw TrackerError(Remedy::kReject, "cannot read " + path + ": " + std::strerror(errno));
    }
    bytes_ = info.st_size;
  }
  ~Upload() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  Upload(const Upload&) = delete;
  Upload& operator=(const Upload&) = delete;

  curl_off_t bytes() const { return bytes_; }
  static std::size_t read_some(char* buffer, std::size_t size, std::size_t count, void* upload) {
    const ssize_t got = read(static_cast<Upload*>(upload)->descriptor_, buffer, size * count);
    return got < 0 ? CURL_READFUNC_ABORT : static_cast<std::size_t>(got);
  }

 private:
  int descriptor_ = -1;
  curl_off_t bytes_ = 0;
};

std::size_t take_body(char* data, std::size_t size, std::size_t count, void* text) {
  auto& body = *static_cast<std::string*>(text);
  if (body.size() + size * count > kAnswerBytesMax) return 0;
  body.append(data, size * count);
  return size * count;
}

struct Headers {
  explicit Headers(const std::vector<std::string>& lines) {
    for (const std::string& line : lines) list = curl().slist_append(list, line.c_str());
  }
  ~Headers() { curl().slist_free_all(list); }
  Headers(const Headers&) = delete;
  Headers& operator=(const Headers&) = delete;
  curl_slist* list = nullptr;
};

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

struct Http::Connection {
  Connection() : handle(curl().easy_init()) {}
  ~Connection() { curl().easy_cleanup(handle); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  template <typename Value>
  void set(CURLoption option, Value value) {
    curl().easy_setopt(handle, option, value);
  }

  CURL* handle;
  char words[CURL_ERROR_SIZE] = {};
};

Http::Http(HttpOptions options) : options_(std::move(options)), connection_(std::make_unique<Connection>()) {}

Http::~Http() = default;

HttpAnswer Http::send(const HttpRequest& request) {
  Connection& to = *connection_;
  curl().easy_reset(to.handle);  // open connections stay
  HttpAnswer answer;
  Upload upload(request.file);
  const bool sends = !request.file.empty() || !request.body.empty() || request.method != "GET";
  std::vector<std::string> lines = request.headers;
  lines.emplace_back("Expect:");  // no question before a body: some servers never answer it
  const auto limit_ms = static_cast<long>(options_.timeout_s * 1000);
  to.words[0] = '\0';
  to.set(CURLOPT_ERRORBUFFER, to.words);
  to.set(CURLOPT_NOSIGNAL, 1L);
  to.set(CURLOPT_URL, request.url.c_str());
  to.set(CURLOPT_PROTOCOLS_STR, "http,https");
  to.set(CURLOPT_CONNECTTIMEOUT_MS, std::min(kConnect_ms, limit_ms));
  to.set(CURLOPT_WRITEFUNCTION, &take_body);
  to.set(CURLOPT_WRITEDATA, static_cast<void*>(&answer.body));
  to.set(CURLOPT_USERAGENT, "roux");
  to.set(CURLOPT_FRESH_CONNECT, request.once ? 1L : 0L);
  if (!request.file.empty()) {
    to.set(CURLOPT_UPLOAD, 1L);
    to.set(CURLOPT_READFUNCTION, &Upload::read_some);
    to.set(CURLOPT_READDATA, static_cast<void*>(&upload));
    to.set(CURLOPT_INFILESIZE_LARGE, upload.bytes());
    to.set(CURLOPT_LOW_SPEED_LIMIT, 1L);
    to.set(CURLOPT_LOW_SPEED_TIME, std::max(1L, limit_ms / 1000));
  } else {
    to.set(CURLOPT_TIMEOUT_MS, limit_ms);
    if (sends) {
      to.set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
      to.set(CURLOPT_POSTFIELDS, request.body.c_str());
    }
  }
  if (sends) to.set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
  if (!options_.token.empty()) {
    to.set(CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
    to.set(CURLOPT_XOAUTH2_BEARER, options_.token.c_str());
  } else if (!options_.user.empty()) {
    to.set(CURLOPT_HTTPAUTH, CURLAUTH_BASIC);
    to.set(CURLOPT_USERNAME, options_.user.c_str());
    to.set(CURLOPT_PASSWORD, options_.password.c_str());
  }
  to.set(CURLOPT_SSL_VERIFYPEER, options_.verify_tls ? 1L : 0L);
  to.set(CURLOPT_SSL_VERIFYHOST, options_.verify_tls ? 2L : 0L);
  if (!options_.ca_file.empty()) to.set(CURLOPT_CAINFO, options_.ca_file.c_str());
  if (!options_.client_certificate.empty()) to.set(CURLOPT_SSLCERT, options_.client_certificate.c_str());
  const Headers headers(lines);
  to.set(CURLOPT_HTTPHEADER, headers.list);

  const CURLcode code = curl().easy_perform(to.handle);
  if (code != CURLE_OK) {
    const std::string words = to.words[0] != '\0' ? to.words : curl().easy_strerror(code);
    const std::optional<std::string> hint = way_out(code, words);
    throw TrackerError(hint ? Remedy::kPause : Remedy::kRetry,
                       without_credentials(request.url) + " does not respond: " + words,
                       hint.value_or(is_cut_off(code) && request.url.starts_with("https:") ? kWantsCertificate : ""));
  }
  curl().easy_getinfo(to.handle, CURLINFO_RESPONSE_CODE, &answer.status);
  return answer;
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

std::string url_encoded(std::string_view text, std::string_view keep) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (plain || std::string_view("-._~").find(c) != std::string_view::npos || keep.find(c) != std::string_view::npos) {
      encoded += c;
    } else {
      encoded += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return encoded;
}

std::string without_credentials(const std::string& url) {
  const auto host = url.find("://");
  if (host == std::string::npos) return url;
  const auto end = url.find('/', host + 3), at = url.rfind('@', end);
  return at == std::string::npos || at < host ? url : url.substr(0, host + 3) + url.substr(at + 1);
}

}  // namespace trackers

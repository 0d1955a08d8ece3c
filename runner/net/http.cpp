#include "runner/net/http.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <utility>

#include "runner/core/units.h"
#include "runner/net/curl.h"
#include "runner/net/pace.h"

namespace runner::net {
namespace {

constexpr std::size_t kAnswerBytesMax = 64U << 20;
constexpr std::size_t kHeaderBytesMax = 1U << 20;
constexpr long kConnect_ms = 10'000;

/// The file that is sent, opened.
class Upload {
 public:
  explicit Upload(const std::string& path) {
    if (path.empty()) return;
    descriptor_ = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat info = {};
    if (descriptor_ < 0 || fstat(descriptor_, &info) != 0) {
      throw core::RunError("cannot read " + path + ": " + std::strerror(errno));
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

/// What a response is read into.
struct Reader {
  CURL* handle = nullptr;
  HttpAnswer* answer = nullptr;
  const HttpRequest* request = nullptr;
  std::size_t header_bytes = 0;
  std::exception_ptr thrown = nullptr;
};

std::size_t take_body(char* data, std::size_t size, std::size_t count, void* reader) {
  auto& to = *static_cast<Reader*>(reader);
  long& status = to.answer->status;
  curl().easy_getinfo(to.handle, CURLINFO_RESPONSE_CODE, &status);
  if (to.request->receive && (status == 200 || status == 206)) {
    try {
      to.request->receive(*to.answer, {data, size * count});
    } catch (...) {  // not through libcurl, which is C
      to.thrown = std::current_exception();
      return 0;
    }
    return size * count;
  }
  std::string& body = to.answer->body;
  if (body.size() + size * count > kAnswerBytesMax) return 0;
  body.append(data, size * count);
  return size * count;
}

std::string trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1));
}

std::size_t take_header(char* data, std::size_t size, std::size_t count, void* reader) {
  auto& to = *static_cast<Reader*>(reader);
  to.header_bytes += size * count;
  if (to.header_bytes > kHeaderBytesMax) return 0;
  const std::string_view line(data, size * count);
  const auto colon = line.find(':');
  if (line.starts_with("HTTP/")) to.answer->headers.clear();  // an earlier response, such as a proxy's
  if (line.starts_with("HTTP/") || colon == std::string_view::npos) return size * count;
  std::string name(line.substr(0, colon));
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  to.answer->headers[name] = trimmed(line.substr(colon + 1));
  return size * count;
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Also called while nothing arrives. Not 0 ends the exchange.
int keep_pace(void* pace, curl_off_t total, curl_off_t received, curl_off_t, curl_off_t) {
  const bool is_whole = total > 0 && received >= total;
  return !is_whole && static_cast<Pace*>(pace)->is_too_slow(received) ? 1 : 0;
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

NoResponse::Cause cause_of(CURLcode code) {
  switch (code) {
    case CURLE_WRITE_ERROR:  // a response beyond its limit
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT: return NoResponse::Cause::kAddress;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM: return NoResponse::Cause::kCertificate;
    default: return NoResponse::Cause::kPasses;
  }
}

}  // namespace

std::string HttpAnswer::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

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
  const bool sends =
      !request.file.empty() || !request.body.empty() || (request.method != "GET" && request.method != "HEAD");
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
  Reader reader{.handle = to.handle, .answer = &answer, .request = &request};
  to.set(CURLOPT_WRITEDATA, static_cast<void*>(&reader));
  to.set(CURLOPT_HEADERFUNCTION, &take_header);
  to.set(CURLOPT_HEADERDATA, static_cast<void*>(&reader));
  to.set(CURLOPT_USERAGENT, "roux");
  to.set(CURLOPT_FRESH_CONNECT, request.once ? 1L : 0L);
  if (!request.file.empty()) {
    to.set(CURLOPT_UPLOAD, 1L);
    to.set(CURLOPT_READFUNCTION, &Upload::read_some);
    to.set(CURLOPT_READDATA, static_cast<void*>(&upload));
    to.set(CURLOPT_INFILESIZE_LARGE, upload.bytes());
  } else if (sends) {
    to.set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    to.set(CURLOPT_POSTFIELDS, request.body.c_str());
  }
  if (!request.file.empty() || request.receive) {
    to.set(CURLOPT_LOW_SPEED_LIMIT, 1L);
    to.set(CURLOPT_LOW_SPEED_TIME, std::max(1L, limit_ms / 1000));
  } else {
    to.set(CURLOPT_TIMEOUT_MS, limit_ms);
  }
  Pace pace(options_.bytes_per_s_min, options_.now ? options_.now : seconds_now);
  if (request.receive) {
    to.set(CURLOPT_NOPROGRESS, 0L);
    to.set(CURLOPT_XFERINFOFUNCTION, &keep_pace);
    to.set(CURLOPT_XFERINFODATA, static_cast<void*>(&pace));
  }
  if (request.method == "HEAD") to.set(CURLOPT_NOBODY, 1L);
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
  if (reader.thrown) std::rethrow_exception(reader.thrown);
  if (pace.is_too_slow()) {
    const std::string words = "less than " + core::format_bytes(static_cast<std::int64_t>(options_.bytes_per_s_min)) +
                              " a second arrived for a minute";
    throw NoResponse(NoResponse::Cause::kPasses, without_credentials(request.url) + " is too slow: " + words, code,
                     words);
  }
  if (code != CURLE_OK) {
    const std::string words = to.words[0] != '\0' ? to.words : curl().easy_strerror(code);
    throw NoResponse(cause_of(code), without_credentials(request.url) + " does not respond: " + words, code, words);
  }
  curl().easy_getinfo(to.handle, CURLINFO_RESPONSE_CODE, &answer.status);
  return answer;
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

}  // namespace runner::net

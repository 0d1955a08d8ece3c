#include "runner/hub/web_file.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "runner/core/text/utf8.h"
#include "runner/hub/answers.h"
#include "runner/hub/client.h"
#include "runner/hub/download.h"
#include "runner/net/digest.h"

namespace runner::hub {
namespace {

using net::HttpAnswer;
using net::NoResponse;

constexpr std::string_view kSecure = "https://", kPlain = "http://", kChecksum = "sha256=";
constexpr std::size_t kUrlMax = 4096, kFileMax = 200, kDigits = 64, kWordsMax = 200, kShownMax = 300;
constexpr std::size_t kPieceBytes = 1 << 20;
constexpr double kTimeout_s = 30;  // of a response; of one in which no byte moves
constexpr const char* kRedirectHint = "check the URL and the proxy";

/// What a URL may consist of (RFC 3986).
bool is_url_character(unsigned char c) {
  return std::isalnum(c) != 0 ||
         std::string_view("-._~:/?#[]@!$&'()*+,;=%").find(static_cast<char>(c)) != std::string_view::npos;
}

/// `HOST[:PORT]`, with user and password if it has them.
std::string_view authority_of(std::string_view url) {
  url.remove_prefix(std::min(url.find("://") + 3, url.size()));
  return url.substr(0, url.find_first_of("/?#"));
}

/// Of an authority without user: without the port.
std::string_view host_of(std::string_view authority) {
  if (authority.starts_with('[')) return authority.substr(0, std::min(authority.find(']'), authority.size() - 1) + 1);
  return authority.substr(0, authority.find(':'));
}

/// What is sent there stays on this machine.
bool is_this_machine(std::string_view host) { return host == "localhost" || host == "127.0.0.1" || host == "[::1]"; }

/// What comes after the host and before the query.
std::string_view path_of(std::string_view url) {
  const std::string_view authority = authority_of(url);
  url.remove_prefix(static_cast<std::size_t>(authority.data() - url.data()) + authority.size());
  return url.substr(0, url.find_first_of("?#"));
}

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/// `%41` is A.
std::string decoded(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_code = text[i] == '%' && i + 2 < text.size() && digit(text[i + 1]) >= 0 && digit(text[i + 2]) >= 0;
    plain += is_code ? static_cast<char>(16 * digit(text[i + 1]) + digit(text[i + 2])) : text[i];
    if (is_code) i += 2;
  }
  return plain;
}

class WebDownload final : public RemoteFile {
 public:
  explicit WebDownload(const WebFile& file)
      : RemoteFile(file.file(), {.etag = file.sha256}), file_(file), http_({.timeout_s = kTimeout_s}) {}

  std::string host() const override { return file_.host(); }
  std::string title() const override { return file_.url; }
  bool is_intact_in_transit() const override { return true; }

  HttpAnswer get(const Range& range, const Receive& receive) override {
    net::HttpRequest request;
    request.url = file_.url;
    request.headers.emplace_back("Accept-Encoding: identity");
    if (const auto header = range.header()) request.headers.push_back(*header);
    request.receive = receive;
    for (int redirects = 0; redirects <= kRedirectsMax; ++redirects) {
      HttpAnswer answer = http_.send(request);
      if (!is_redirect(answer)) return answer;
      const auto target = redirect_target(request.url, answer.header("location"));
      if (!target) throw HubError(host() + target.failure().message, kRedirectHint);
      const std::string_view authority = authority_of(target.value());
      // In `localhost:x@HOST` what looks like this machine is a user with a password.
      const bool is_here = authority.find('@') == std::string_view::npos && is_this_machine(host_of(authority));
      if (target.value().starts_with(kPlain) && !is_here) {
        throw HubError(host() + " redirects to http, which anyone on the way could change", kRedirectHint);
      }
      request.url = target.value();
    }
    throw HubError(host() + " redirects more than " + std::to_string(kRedirectsMax) + " times", kRedirectHint);
  }

  HubError refusal(const HttpAnswer& answer) const override {
    const std::string status = std::to_string(answer.status);
    if (answer.status == 404 || answer.status == 410) {
      return HubError::wrong_name(host() + " has no file " + file_.url + ": it answers " + status, "check the URL");
    }
    if (answer.status == 401 || answer.status == 403) {
      return {host() + " refuses " + file_.url + ": it answers " + status,
              "no login is sent to it: download the file by other means, and name its path"};
    }
    const std::string words = answer.body.empty() ? "" : ": " + core::quote(answer.body, kWordsMax);
    if (is_temporary(answer.status)) {
      return {host() + " is overloaded: it answers " + status + words, try_again(answer), true};
    }
    return {host() + " answers " + status + " for " + file_.url + words, "check the URL and the proxy"};
  }

  HubError unreachable(const NoResponse& error) const override {
    std::string hint = error.hint();
    if (error.cause() == NoResponse::Cause::kCertificate) {
      hint = "install the certificates of its authority on this machine (package ca-certificates)";
    } else if (hint.empty()) {
      hint = "check the URL, the network and HTTPS_PROXY; a part that is there is kept";
    }
    return {error.what(), hint, error.passes()};
  }

  HubError damaged(const std::string& what) const override {
    return {file_.url + " is not the file with that checksum: " + what,
            "correct the checksum if it is misspelt; else the file was changed there, and its publisher knows why"};
  }

 private:
  const WebFile& file_;
  net::Http http_;
};

/// Whether a file of the cache still has its checksum: what is trained on is what the recipe names. Reads it whole.
bool is_intact(const std::string& path, const std::string& sha256) {
  std::ifstream file(path, std::ios::binary);
  net::Digest digest(net::Digest::Kind::kSha256);
  std::vector<char> piece(kPieceBytes);
  while (file) {
    file.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    digest.add({piece.data(), static_cast<std::size_t>(file.gcount())});
  }
  return file.eof() && digest.hex() == sha256;
}

/// Of a text without a right checksum.
core::Failure wrong(const std::string& text, const std::string& why, const std::string& hint) {
  return {core::quote(text, kShownMax) + " cannot be fetched: " + why, hint, core::kExitUsage};
}

}  // namespace

std::string WebFile::file() const {
  const std::string_view path = path_of(url);
  std::string name = decoded(path.substr(path.rfind('/') + 1));
  if (name.size() > kFileMax) name.erase(0, name.size() - kFileMax);
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && std::string_view("-_.+=").find(c) == std::string_view::npos)
      c = '_';
  }
  if (name.starts_with('.')) name[0] = '_';
  return name;
}

std::string WebFile::host() const { return std::string(authority_of(url)); }

bool is_web_file(std::string_view text) { return text.starts_with(kSecure) || text.starts_with(kPlain); }

core::Result<WebFile> parse_web_file(const std::string& text) {
  WebFile file;
  const std::size_t hash = std::min(text.find('#'), text.size());
  file.url = text.substr(0, hash);
  const std::string form = "write https://HOST/PATH#sha256=HEX";
  if (!is_web_file(text)) return wrong(text, "it begins neither with https:// nor with http://", form);
  if (text.size() > kUrlMax) return wrong(text, "it is longer than 4096 characters", form);
  if (!std::all_of(file.url.begin(), file.url.end(), is_url_character)) {
    return wrong(text, "it holds a character that no URL has", "write that as %XX, a space as %20");
  }
  const std::string_view authority = authority_of(file.url);
  if (authority.find('@') != std::string_view::npos) {
    return core::Failure{"a URL with a user name or password cannot be fetched: the run would record them",
                         "download the file by other means, and name its path", core::kExitUsage};
  }
  if (host_of(authority).empty()) return wrong(text, "it has no host", form);
  if (file.file().empty()) return wrong(text, "it names no file", form);
  if (text.starts_with(kPlain) && !is_this_machine(host_of(authority))) {
    return wrong(text, "http is for servers on this machine",
                 "write https:// if the server has it; else download the file, and name its path");
  }
  if (hash == text.size()) {
    return wrong(text, "it has no checksum",
                 "write " + file.url + "#sha256=HEX; `sha256sum FILE` prints HEX of a file that you have");
  }
  std::string_view checksum = std::string_view(text).substr(hash + 1);
  if (!checksum.starts_with(kChecksum) || checksum.size() != kChecksum.size() + kDigits ||
      !std::all_of(checksum.begin() + kChecksum.size(), checksum.end(), [](char c) { return digit(c) >= 0; })) {
    return wrong(text, "after # there must be sha256= and 64 hex digits",
                 "write " + file.url + "#sha256=HEX; `sha256sum FILE` prints HEX of a file that you have");
  }
  file.sha256 = checksum.substr(kChecksum.size());
  std::transform(file.sha256.begin(), file.sha256.end(), file.sha256.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return file;
}

std::unique_ptr<RemoteFile> remote_file(const WebFile& file) { return std::make_unique<WebDownload>(file); }

std::optional<Located> locate(const WebFile& file, const Settings& settings) {
  const Cache cache = Cache::of_web_files(settings);
  if (!cache.has(file.sha256, file.file())) return std::nullopt;
  return Located{cache.path(file.sha256, file.file()), file.text()};
}

Located fetch(const WebFile& file, const Settings& settings, const FetchWatch& watch) {
  const Cache cache = Cache::of_web_files(settings);
  std::error_code failed;
  const std::string blob = cache.blob(file.sha256);
  if (std::filesystem::exists(blob, failed) && !is_intact(blob, file.sha256)) {
    const std::string damaged = blob + " in the cache is damaged: it is not the file with that checksum";
    if (settings.offline) throw HubError(damaged, "unset HF_HUB_OFFLINE: it is then downloaded again");
    if (watch.notes) watch.notes(damaged + "; it is downloaded again");
    std::filesystem::remove(blob, failed);
  }
  if (auto here = locate(file, settings)) return *std::move(here);
  if (settings.offline && !std::filesystem::exists(cache.blob(file.sha256), failed)) {
    throw HubError(file.url + " is not in the cache " + cache.folder() + ", and HF_HUB_OFFLINE is set",
                   "unset HF_HUB_OFFLINE, or copy the cache of a machine that has it");
  }
  WebDownload wanted(file);
  FetchProgress progress;
  progress.file = wanted.name();
  download(wanted, cache,
           {.wait = watch.wait,
            .at =
                [&](std::int64_t bytes) {
                  progress.bytes = bytes;
                  if (watch.progress) watch.progress(progress);
                },
            .notes = watch.notes,
            .sized =
                [&](std::int64_t bytes, std::int64_t present) {
                  progress.bytes_total = bytes;
                  progress.bytes_before = present;
                  check_space(cache, file.url, bytes - present);
                }});
  cache.link(file.sha256, file.file(), file.sha256);
  return {cache.path(file.sha256, file.file()), file.text()};
}

}  // namespace runner::hub

#include "runner/hub/answers.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "runner/core/units.h"
#include "runner/hub/name.h"

namespace runner::hub {
namespace {

using net::HttpAnswer;

constexpr double kPauseMax_s = 300;
constexpr std::size_t kEtagMax = 128;
constexpr std::size_t kFilesMax = 1'000'000;

std::optional<std::int64_t> number_of(std::string_view text) {
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

/// Takes the commit and the files out of the Hub's JSON as it is read: a tree of a hostile one would take many times
/// its bytes.
class ListingReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  /// Nothing without a commit or a list of files.
  std::optional<Listing> listing() {
    if (!has_siblings_ || !is_commit(listing_.commit)) return std::nullopt;
    return std::move(listing_);
  }

  bool string(std::string& text) override {
    if (depth_ == kTop && key_ == "sha") listing_.commit = text;
    if (!in_siblings_ || depth_ != kSibling || key_ != "rfilename" || !is_safe_path(text)) return depth_ >= kTop;
    if (listing_.files.size() == kFilesMax) return false;
    listing_.files.push_back(std::move(text));
    return true;
  }
  bool key(std::string& name) override {
    key_ = std::move(name);
    return true;
  }
  bool start_object(std::size_t) override { return enter(); }
  bool start_array(std::size_t) override {
    if (depth_ < kTop) return false;
    if (depth_ == kTop) in_siblings_ = key_ == "siblings";
    has_siblings_ = has_siblings_ || in_siblings_;
    return enter();
  }
  bool end_object() override { return leave(); }
  bool end_array() override { return leave(); }
  bool null() override { return depth_ >= kTop; }
  bool boolean(bool) override { return depth_ >= kTop; }
  bool number_integer(number_integer_t) override { return depth_ >= kTop; }
  bool number_unsigned(number_unsigned_t) override { return depth_ >= kTop; }
  bool number_float(number_float_t, const std::string&) override { return depth_ >= kTop; }
  bool binary(nlohmann::json::binary_t&) override { return false; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) override { return false; }

 private:
  static constexpr int kTop = 1, kSibling = 3;

  bool enter() {
    ++depth_;
    key_.clear();
    return true;
  }
  bool leave() {
    --depth_;
    key_.clear();
    if (depth_ == kTop) in_siblings_ = false;
    return true;
  }

  Listing listing_;
  std::string key_;  ///< of the value that comes next; "" in a list
  std::int64_t depth_ = 0;
  bool in_siblings_ = false, has_siblings_ = false;
};

}  // namespace

std::optional<Listing> parse_listing(const std::string& json) {
  ListingReader reader;
  if (!nlohmann::json::sax_parse(json, &reader)) return std::nullopt;
  return reader.listing();
}

std::string to_json(const Listing& listing) {
  nlohmann::json files = nlohmann::json::array();
  for (const std::string& file : listing.files) files.push_back({{"rfilename", file}});
  const nlohmann::json whole = {{"sha", listing.commit}, {"siblings", std::move(files)}};
  return whole.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::optional<FileInfo> parse_file_info(const HttpAnswer& answer, const std::string& commit) {
  FileInfo info;
  const std::string linked = answer.header("x-linked-etag"), size = answer.header("x-linked-size");
  info.etag = plain_etag(linked.empty() ? answer.header("etag") : linked);
  const std::string told = !size.empty() ? size : is_redirect(answer) ? "" : answer.header("content-length");
  info.bytes = number_of(told).value_or(-1);
  const std::string from = answer.header("x-repo-commit");
  if (!is_file_name(info.etag) || (!from.empty() && from != commit)) return std::nullopt;
  return info;
}

std::optional<std::string> Range::header() const {
  if (from == 0 && !count) return std::nullopt;
  return "Range: bytes=" + std::to_string(from) + "-" + (count ? std::to_string(from + *count - 1) : "");
}

ContentRange content_range(const HttpAnswer& answer) {
  const std::string header = answer.header("content-range");
  constexpr std::string_view kUnit = "bytes ";
  if (!header.starts_with(kUnit)) return {};
  const std::string_view range = std::string_view(header).substr(kUnit.size());
  const std::size_t slash = range.find('/'), dash = range.find('-');
  ContentRange told;
  if (dash < slash) told.begin = number_of(range.substr(0, dash)).value_or(-1);
  if (slash != std::string_view::npos) told.total = number_of(range.substr(slash + 1)).value_or(-1);
  return told;
}

std::int64_t whole_bytes(const HttpAnswer& answer) {
  return answer.status == 200 ? number_of(answer.header("content-length")).value_or(-1) : content_range(answer).total;
}

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

bool is_redirect(const HttpAnswer& answer) {
  return (answer.status == 301 || answer.status == 302 || answer.status == 303 || answer.status == 307 ||
          answer.status == 308) &&
         !answer.header("location").empty();
}

std::string joined_url(const std::string& base, const std::string& location) {
  if (location.find("://") != std::string::npos && location.find("://") < location.find_first_of("/?#"))
    return location;
  const auto scheme = base.find("://");
  if (location.starts_with("//")) return base.substr(0, scheme + 1) + location;
  const std::string whole = base.substr(0, base.find_first_of("?#", scheme + 3));  // without query and fragment
  const auto path = whole.find('/', scheme + 3);
  const std::string host = whole.substr(0, path);
  if (location.empty()) return base;
  if (location.starts_with('/')) return host + location;
  if (location.starts_with('#')) return base.substr(0, base.find('#')) + location;
  const std::string here = path == std::string::npos ? "/" : whole.substr(path);
  if (location.starts_with('?')) return host + here + location;
  return host + here.substr(0, here.rfind('/') + 1) + location;
}

core::Result<std::string> redirect_target(const std::string& from, const std::string& location) {
  const std::string next = joined_url(from, location);
  if (!next.starts_with("https://") && !next.starts_with("http://")) {
    return core::Failure{" redirects to an address that is neither http nor https"};
  }
  if (from.starts_with("https://") && !next.starts_with("https://")) {
    return core::Failure{" redirects from https to http, which anyone on the way could change"};
  }
  return next;
}

bool is_temporary(long status) {
  return status == 408 || status == 429 || status == 500 || status == 502 || status == 503 || status == 504;
}

std::optional<double> pause_before(int attempt, const HttpAnswer* answer) {
  const auto asked = answer != nullptr ? number_of(answer->header("retry-after")) : std::nullopt;
  if (asked) return static_cast<double>(*asked) > kPauseMax_s ? std::nullopt : std::optional<double>(*asked);
  return static_cast<double>(1 << std::min(attempt, 5));
}

std::string try_again(const HttpAnswer& answer) {
  const auto seconds = number_of(answer.header("retry-after"));
  return seconds ? "try again in " + core::format_duration(static_cast<double>(*seconds)) : "try again later";
}

}  // namespace runner::hub

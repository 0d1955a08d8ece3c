#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runner/core/result.h"
#include "runner/net/http.h"

namespace runner::hub {

// What servers answer, read with distrust: nothing here throws, and what is accepted is safe to use as a name of a
// file.

inline constexpr int kRedirectsMax = 10;

struct Listing {
  std::string commit;
  std::vector<std::string> files;  ///< those with a safe path
};

struct FileInfo {
  std::string etag;         ///< SHA-256 of a large file, git's SHA-1 of another; a plain name in any case
  std::int64_t bytes = -1;  ///< -1: the server does not say
};

/// Of the Hub's JSON about a revision. Nothing when it has no commit or no files.
std::optional<Listing> parse_listing(const std::string& json);
/// As parse_listing() reads it.
std::string to_json(const Listing& listing);
/// Of the headers with which the Hub describes a file of a commit, which may redirect to its storage. Nothing when they
/// do not say its hash, or are about another commit.
std::optional<FileInfo> parse_file_info(const net::HttpAnswer& answer, const std::string& commit);

/// What is asked for of a file: `count` bytes from `from` on, or all that follow.
struct Range {
  std::int64_t from = 0;
  std::optional<std::int64_t> count = {};

  /// The header `Range`; nothing for the whole file.
  std::optional<std::string> header() const;
};

/// `Content-Range: bytes BEGIN-END/TOTAL`; what it does not say is -1, as in `bytes */TOTAL` of a refusal.
struct ContentRange {
  std::int64_t begin = -1, total = -1;
};
ContentRange content_range(const net::HttpAnswer& answer);
/// Bytes of the whole file, by a response with all of it or a part; -1: it does not say.
std::int64_t whole_bytes(const net::HttpAnswer& answer);

/// Scheme, host and port of a URL, in lower case; "" if it has none. The port of the scheme is left out.
std::string origin_of(const std::string& url);
bool is_redirect(const net::HttpAnswer& answer);
/// A `Location` against the URL that gave it.
std::string joined_url(const std::string& base, const std::string& location);
/// Where a redirect leads. Failure when it leaves http and https, or https for http; its message follows a name.
core::Result<std::string> redirect_target(const std::string& from, const std::string& location);

/// Whether the same request may succeed later: 408, 429 and the 5xx of overload.
bool is_temporary(long status);
/// Seconds before the retry after `attempt` failures, as `Retry-After` of the response says or else doubled each time;
/// nothing when it asks for more than five minutes.
std::optional<double> pause_before(int attempt, const net::HttpAnswer* answer);
/// `try again later`, or when the response says.
std::string try_again(const net::HttpAnswer& answer);

}  // namespace runner::hub

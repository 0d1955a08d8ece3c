#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "runner/core/result.h"
#include "runner/hub/cache.h"
#include "runner/hub/download.h"
#include "runner/hub/fetch.h"
#include "runner/hub/settings.h"

namespace runner::hub {

/// `https://HOST/PATH#sha256=HEX`: a file of any server with its checksum, in the form of pip and PEP 503. The checksum
/// says what the file is, so that it is looked for in the cache without a question to the server.
struct WebFile {
  std::string url;     ///< without the checksum
  std::string sha256;  ///< 64 hex digits in lower case

  /// As a recipe writes it.
  std::string text() const { return url + "#sha256=" + sha256; }
  /// The last part of its path, as a plain name on this machine; its ending says what the file is.
  std::string file() const;
  std::string host() const;
};

/// Whether a value of a recipe or of the command line begins with `https://` or `http://`.
bool is_web_file(std::string_view text);

/// The Failure says what is wrong with it and how it is written. `http://` is for servers on this machine alone.
core::Result<WebFile> parse_web_file(const std::string& text);

/// The file on its server; `file` must outlive it.
std::unique_ptr<RemoteFile> remote_file(const WebFile& file);

/// Looks only at the cache.
std::optional<Located> locate(const WebFile& file, const Settings& settings);

/// Brings the file into the cache, unless it is there, and checks it before it is in its place. No token is sent.
/// HubError or RunError says what to do.
Located fetch(const WebFile& file, const Settings& settings, const FetchWatch& watch);

}  // namespace runner::hub

#include "runner/hub/settings.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>

#include "runner/core/platform/files.h"
#include "runner/core/platform/machine.h"
#include "runner/core/text/utf8.h"
#include "runner/net/environment.h"
#include "runner/net/http.h"

namespace runner::hub {
namespace {

namespace fs = std::filesystem;

using net::environment;

constexpr std::int64_t kTokenFileMax = 64 << 10;

/// `~` at the beginning is the home folder, as in Python.
std::string expanded(const std::string& path) {
  const auto home = environment("HOME");
  return home && (path == "~" || path.starts_with("~/")) ? *home + path.substr(1) : path;
}

/// HF_HOME; "" when neither it nor a home folder is known.
std::string hub_home() {
  if (const auto home = environment("HF_HOME")) return expanded(*home);
  if (const auto cache = environment("XDG_CACHE_HOME")) return expanded(*cache) + "/huggingface";
  const auto home = environment("HOME");
  return home ? *home + "/.cache/huggingface" : "";
}

std::string cache_folder() {
  for (const char* variable : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"}) {
    if (const auto cache = environment(variable)) return expanded(*cache);
  }
  const std::string home = hub_home();
  return home.empty() ? "" : home + "/hub";
}

core::Result<std::string> checked_token(const std::string& text, const std::string& source) {
  std::string token;
  for (const char c : text) {
    if (c != '\r' && c != '\n') token += c;
  }
  const auto first = token.find_first_not_of(" \t");
  if (first == std::string::npos) return std::string();
  token = token.substr(first, token.find_last_not_of(" \t") - first + 1);
  if (std::all_of(token.begin(), token.end(), [](unsigned char c) { return c > 0x20 && c < 0x7f; })) return token;
  return core::Failure{
      source + " is not a token of the Hugging Face Hub: it holds a space or another character that no token has",
      "write the token alone there, such as hf_..."};
}

}  // namespace

std::string Settings::host() const {
  const std::string url = net::without_credentials(endpoint);
  const auto begin = url.find("://");
  return begin == std::string::npos ? url : url.substr(begin + 3);
}

core::Result<Settings> read_settings() {
  Settings settings;
  settings.cache = cache_folder();
  if (settings.cache.empty()) {
    return core::Failure{"there is no folder for the cache of the Hugging Face Hub: HOME is not set",
                         "set HF_HUB_CACHE to a folder"};
  }
  settings.endpoint = environment("HF_ENDPOINT").value_or("https://huggingface.co");
  while (settings.endpoint.ends_with('/')) settings.endpoint.pop_back();
  if (!settings.endpoint.starts_with("https://") && !settings.endpoint.starts_with("http://")) {
    return core::Failure{"HF_ENDPOINT must begin with https:// or http://, got " +
                             core::quote(net::without_credentials(settings.endpoint)),
                         "unset it to use https://huggingface.co"};
  }
  settings.offline = net::environment_flag("HF_HUB_OFFLINE") || net::environment_flag("TRANSFORMERS_OFFLINE");
  settings.web_files = core::cache_dir() + "/files";
  settings.listings = core::cache_dir() + "/listings";
  return settings;
}

core::Result<std::string> read_token() {
  if (net::environment_flag("HF_HUB_DISABLE_IMPLICIT_TOKEN")) return std::string();
  for (const char* variable : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}) {
    if (const auto token = environment(variable)) return checked_token(*token, variable);
  }
  const std::string home = hub_home();
  const auto named = environment("HF_TOKEN_PATH");
  if (!named && home.empty()) return std::string();
  const std::string path = named ? expanded(*named) : home + "/token";
  std::error_code failed;
  if (!fs::exists(path, failed)) return std::string();
  const auto content = core::read_file(path, kTokenFileMax);
  return content ? checked_token(content.value(), path) : core::Result<std::string>(content.failure());
}

}  // namespace runner::hub

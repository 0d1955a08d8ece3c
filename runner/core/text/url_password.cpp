#include "runner/core/text/url_password.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "runner/core/text/text.h"

namespace runner::core {
namespace {

constexpr std::size_t kTokenMin = 20;  ///< characters; user names are shorter
constexpr std::array<std::string_view, 9> kParameters = {"password", "passwd", "token",   "access_token", "auth_token",
                                                         "api_key",  "apikey", "api-key", "secret"};

bool is_parameter(std::string_view name) {
  return std::find(kParameters.begin(), kParameters.end(), lower(name)) != kParameters.end();
}

/// The end of `user:password@host`, which ends before `host_end`, the first of `/?#`, unless the password holds that:
/// `postgres://me:pa/ss@host/db`. After a port, a drive or an address of IPv6 it is part of the path.
std::size_t end_of_user(std::string_view text, std::size_t begin, std::size_t host_end, std::size_t end) {
  const std::string_view host = text.substr(begin, host_end - begin);
  const std::size_t colon = host.find(':');
  if (host_end == end || host.find('@') != std::string_view::npos || colon == std::string_view::npos) return host_end;
  const std::string_view behind = host.substr(colon + 1);
  const bool is_port = behind.find_first_not_of("0123456789") == std::string_view::npos;
  if (host.starts_with('[') || is_port) return host_end;
  const std::size_t question = std::min(text.find('?', host_end + 1), end);
  std::size_t at = text.substr(0, question).rfind('@');
  if (at == std::string_view::npos || at < host_end) at = text.substr(0, end).rfind('@');
  return at == std::string_view::npos || at < host_end ? host_end : at + 1;
}

/// Of `user:password@host`, which begins at `begin`.
void add_of_user(std::string_view text, std::size_t begin, std::size_t end, bool is_http,
                 std::vector<TextSpan>& found) {
  const std::size_t at = text.substr(0, end).rfind('@');
  if (at == std::string_view::npos || at < begin) return;
  const std::size_t colon = text.substr(0, at).find(':', begin);
  if (colon == std::string_view::npos) {
    if (is_http && at - begin >= kTokenMin) found.push_back({begin, at - begin});
  } else if (at > colon + 1) {
    found.push_back({colon + 1, at - colon - 1});
  }
}

/// Of `?user=me&password=word`.
void add_of_query(std::string_view text, std::size_t begin, std::size_t end, std::vector<TextSpan>& found) {
  while (begin < end) {
    const std::size_t next = std::min(text.find_first_of("&#;", begin), end);
    const std::size_t equals = text.substr(0, next).find('=', begin);
    if (equals != std::string_view::npos && next > equals + 1 && is_parameter(text.substr(begin, equals - begin))) {
      found.push_back({equals + 1, next - equals - 1});
    }
    begin = next + 1;
  }
}

}  // namespace

std::vector<TextSpan> find_url_passwords(std::string_view text) {
  std::vector<TextSpan> found;
  constexpr std::string_view kBegin = "://";
  for (std::size_t at = text.find(kBegin); at != std::string_view::npos; at = text.find(kBegin, at + kBegin.size())) {
    const std::size_t begin = at + kBegin.size();
    const std::size_t end = std::min(text.find_first_of(" \t\r\n\"'<>", begin), text.size());
    const std::size_t host_end = std::min(text.find_first_of("/?#", begin), end);
    const std::string_view scheme = text.substr(0, at);
    add_of_user(text, begin, end_of_user(text, begin, host_end, end),
                scheme.ends_with("http") || scheme.ends_with("https"), found);
    const std::size_t question = text.substr(0, end).find('?', host_end);
    if (question != std::string_view::npos) add_of_query(text, question + 1, end, found);
  }
  return found;
}

std::string hide_url_passwords(std::string_view text, std::string_view hidden) {
  std::string result;
  std::size_t at = 0;
  for (const TextSpan& password : find_url_passwords(text)) {
    if (password.begin < at) continue;  // a URL within the query of another one
    result.append(text.substr(at, password.begin - at)).append(hidden);
    at = password.begin + password.size;
  }
  return result.append(text.substr(at));
}

}  // namespace runner::core

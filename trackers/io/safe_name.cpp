#include "trackers/io/safe_name.h"

#include <algorithm>
#include <cctype>
#include <cstddef>

#include "runner/net/digest.h"

namespace trackers {
namespace {

using runner::net::sha256;

constexpr std::size_t kBytesMax = 80, kDigits = 12;

bool is_plain(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.' || c == '+' || c == '=';
}

}  // namespace

std::string safe_name(std::string_view name) {
  std::string plain;
  for (const char c : name.substr(0, kBytesMax)) plain += is_plain(c) ? c : '_';
  const bool starts_plainly =
      !plain.empty() && (std::isalnum(static_cast<unsigned char>(plain[0])) != 0 || plain[0] == '_');
  if (plain == name && starts_plainly && plain.back() != '.') return plain;
  plain.resize(std::min(plain.size(), kBytesMax - kDigits - 1));
  if (!starts_plainly) plain.insert(0, "_").resize(std::min(plain.size(), kBytesMax - kDigits - 1));
  return plain + "-" + sha256(name).substr(0, kDigits);
}

}  // namespace trackers

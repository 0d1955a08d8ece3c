#include "runner/store/database/text.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <ctime>

namespace runner::store {
namespace {

constexpr std::string_view kDigits = "0123456789abcdefghjkmnpqrstvwxyz";  // Crockford's base 32
constexpr std::int64_t kEpochMs = 1'735'689'600'000;                      // 2025-01-01; 40 bits reach until 2059
constexpr int kTimeDigits = 8;

std::string formatted(std::int64_t wall_ms, const char* format) {
  const std::time_t seconds = static_cast<std::time_t>(wall_ms / 1000);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 40> text{};
  std::strftime(text.data(), text.size(), format, &parts);
  return text.data();
}

/// Digits where the form has a `d`, else the same characters; and so far only.
bool has_form(std::string_view text, std::string_view form) {
  if (text.size() > form.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (form[i] == 'd' ? !digit : text[i] != form[i]) return false;
  }
  return true;
}

}  // namespace

std::string utc_text(std::int64_t wall_ms) { return formatted(wall_ms, "%Y-%m-%d %H:%M:%S UTC"); }

std::string utc_stamp(std::int64_t wall_ms) { return formatted(wall_ms, "%Y-%m-%dT%H:%M:%SZ"); }

std::string utc_date(std::int64_t wall_ms) { return formatted(wall_ms, "%Y-%m-%d"); }

std::optional<std::string> date_prefix(const std::string& text) {
  if (text == "today" || text == "yesterday") return text;
  std::string date = text;
  std::replace(date.begin(), date.end(), ' ', 'T');
  if (!has_form(date, "dddd-dd-ddTdd:dd:ddZ")) return std::nullopt;
  static constexpr std::array<std::size_t, 7> kLengths = {4, 7, 10, 13, 16, 19, 20};
  if (std::find(kLengths.begin(), kLengths.end(), date.size()) == kLengths.end()) return std::nullopt;
  const auto within = [&](std::size_t at, int least, int most) {
    if (date.size() < at + 2) return true;
    const int number = (date[at] - '0') * 10 + (date[at + 1] - '0');
    return number >= least && number <= most;
  };
  if (!within(5, 1, 12) || !within(8, 1, 31) || !within(11, 0, 23) || !within(14, 0, 59) || !within(17, 0, 60)) {
    return std::nullopt;
  }
  return date;
}

std::string new_run_id(std::int64_t wall_ms) {
  std::int64_t time = std::max<std::int64_t>(wall_ms - kEpochMs, 0);
  std::string id(kRunIdLength, '0');
  for (int digit = kTimeDigits - 1; digit >= 0; --digit, time >>= 5) id[digit] = kDigits[time & 31];
  std::array<unsigned char, kRunIdLength - kTimeDigits> chance{};
  if (getrandom(chance.data(), chance.size(), 0) < 0) chance.fill(static_cast<unsigned char>(wall_ms));
  for (std::size_t i = 0; i < chance.size(); ++i) id[kTimeDigits + i] = kDigits[chance[i] & 31];
  return id;
}

std::optional<FolderName> parse_folder_name(std::string_view folder) {
  if (folder.size() < kRunIdLength + 2) return std::nullopt;
  const std::string_view id = folder.substr(folder.size() - kRunIdLength);
  if (folder[folder.size() - kRunIdLength - 1] != '-') return std::nullopt;
  if (id.find_first_not_of(kDigits) != std::string_view::npos) return std::nullopt;
  std::int64_t time = 0;
  for (const char digit : id.substr(0, kTimeDigits)) time = time * 32 + static_cast<std::int64_t>(kDigits.find(digit));
  const std::string_view name = folder.substr(0, folder.size() - kRunIdLength - 1);
  return FolderName{std::string(name), std::string(id), time + kEpochMs};
}

}  // namespace runner::store

#include "runner/core/units.h"

#include <charconv>
#include <cmath>
#include <cstdio>

#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"

namespace runner::core {
namespace {

constexpr const char* kIntervalHint =
    "write 200 (optimizer steps) or an amount with its unit: 2ep, 500ba, 1e6tok, 5000sp, 30min, 0.1dur";
constexpr const char* kDurationHint = "write seconds or an amount with its unit: 90s, 30min, 1.5h, 2d, 1h30min";
constexpr const char* kBytesHint = "write 500MB, 10GB, 5GiB, or a number of bytes";

// Takes a number off the front; false when there is none. `1e6tok` is 1e6 and `tok`: from_chars stops at the first
// letter that cannot continue it, so `2ep` is 2 and `ep`.
bool take_number(std::string_view& text, double& value) {
  if (!text.empty() && (text[0] == 'i' || text[0] == 'n' || text[0] == 'I' || text[0] == 'N')) return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !std::isfinite(value)) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  while (!text.empty() && text[0] == ' ') text.remove_prefix(1);
  return true;
}

std::string_view take_letters(std::string_view& text) {
  std::size_t n = 0;
  while (n < text.size() && ((text[n] >= 'a' && text[n] <= 'z') || (text[n] >= 'A' && text[n] <= 'Z'))) ++n;
  const std::string_view letters = text.substr(0, n);
  text.remove_prefix(n);
  while (!text.empty() && text[0] == ' ') text.remove_prefix(1);
  return letters;
}

std::optional<double> seconds_of(std::string_view unit) {
  if (unit == "s") return 1.0;
  if (unit == "min") return 60.0;
  if (unit == "h") return 3600.0;
  if (unit == "d") return 86400.0;
  return std::nullopt;
}

// Common spellings of units, and their meaning.
std::string meant_unit(std::string_view unit) {
  if (unit == "m" || unit == "mins" || unit == "minute" || unit == "minutes") return "min";
  if (unit == "sec" || unit == "secs" || unit == "second" || unit == "seconds") return "s";
  if (unit == "hr" || unit == "hrs" || unit == "hour" || unit == "hours") return "h";
  if (unit == "day" || unit == "days") return "d";
  if (unit == "epoch" || unit == "epochs" || unit == "e") return "ep";
  if (unit == "batch" || unit == "batches" || unit == "b") return "ba";
  if (unit == "token" || unit == "tokens" || unit == "toks" || unit == "t") return "tok";
  if (unit == "sample" || unit == "samples") return "sp";
  if (unit == "step" || unit == "steps") return "";
  return "?";
}

/// `failure`, with the whole text in units as they are written here, where it can be: `1h30min` for `1h30m`.
Failure with_units(Failure failure, std::string_view text) {
  std::string meant_text;
  double amount = 0.0;
  while (!text.empty()) {
    if (!take_number(text, amount)) return failure;
    const std::string_view unit = take_letters(text);
    const std::string meant = seconds_of(unit) ? std::string(unit) : meant_unit(unit);
    if (meant == "?") return failure;
    meant_text += number_text(amount) + meant;
  }
  failure.hint = "did you mean " + meant_text + "?";
  failure.word = meant_text;
  return failure;
}

}  // namespace

Result<double> parse_duration_s(std::string_view text) {
  const Failure failure{quote(text) + " is not a duration", kDurationHint};
  std::string_view rest = trimmed(text);
  double total = 0.0;
  double amount = 0.0;
  bool first = true;
  if (rest.empty()) return failure;
  while (!rest.empty()) {
    if (!take_number(rest, amount)) return failure;
    if (amount < 0) return Failure{"a duration cannot be negative, got " + quote(text), kDurationHint};
    const std::string_view unit = take_letters(rest);
    if (first && unit.empty() && rest.empty()) return amount;
    const auto factor = seconds_of(unit);
    if (!factor) {
      const bool is_time = seconds_of(meant_unit(unit)).has_value();
      return is_time ? with_units(failure, trimmed(text)) : failure;
    }
    total += amount * *factor;
    first = false;
  }
  return total;
}

Result<Interval> parse_interval(std::string_view text) {
  const Failure failure{quote(text) + " is not an interval", kIntervalHint};
  std::string_view rest = trimmed(text);
  const std::string_view whole = rest;
  double amount = 0.0;
  if (!take_number(rest, amount)) return failure;
  if (!(amount > 0)) return Failure{"an interval must be more than 0, got " + quote(text), kIntervalHint};
  const std::string_view unit = take_letters(rest);
  if (seconds_of(unit)) {
    const auto seconds = parse_duration_s(whole);
    if (!seconds) return failure;
    return Interval{Interval::Unit::kSeconds, seconds.value()};
  }
  if (!rest.empty()) return failure;

  const auto whole_number = [&](Interval::Unit kind, const char* what) -> Result<Interval> {
    if (amount == std::floor(amount) && amount < 9e15) return Interval{kind, amount};
    return Failure{std::string(what) + " must be a whole number, got " + quote(text), kIntervalHint};
  };
  if (unit.empty()) return whole_number(Interval::Unit::kSteps, "an interval in optimizer steps");
  if (unit == "ep") return Interval{Interval::Unit::kEpochs, amount};
  if (unit == "ba") return whole_number(Interval::Unit::kBatches, "an interval in micro-batches");
  if (unit == "tok") return whole_number(Interval::Unit::kTokens, "an interval in tokens");
  if (unit == "sp") return whole_number(Interval::Unit::kSamples, "an interval in samples");
  if (unit == "dur") {
    if (amount <= 1.0) return Interval{Interval::Unit::kDuration, amount};
    return Failure{"a fraction of the training is at most 1dur, got " + quote(text),
                   "1dur is the whole training, 0.1dur a tenth"};
  }
  return with_units(failure, whole);
}

std::string to_text(const Interval& interval) {
  const char* unit = "";
  switch (interval.unit) {
    case Interval::Unit::kSteps: break;
    case Interval::Unit::kEpochs: unit = "ep"; break;
    case Interval::Unit::kBatches: unit = "ba"; break;
    case Interval::Unit::kTokens: unit = "tok"; break;
    case Interval::Unit::kSamples: unit = "sp"; break;
    case Interval::Unit::kSeconds: unit = "s"; break;
    case Interval::Unit::kDuration: unit = "dur"; break;
  }
  return number_text(interval.amount) + unit;
}

Result<std::int64_t> parse_bytes(std::string_view text) {
  const Failure failure{quote(text) + " is not a size", kBytesHint};
  std::string_view rest = trimmed(text);
  double amount = 0.0;
  if (!take_number(rest, amount)) return failure;
  if (amount < 0) return Failure{"a size cannot be negative, got " + quote(text), kBytesHint};
  if (rest.empty())
    return amount == std::floor(amount) && amount < 9.2e18 ? Result<std::int64_t>(static_cast<std::int64_t>(amount))
                                                           : failure;

  std::string unit;
  for (const char c : rest) unit += static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  double factor = 0.0;
  if (unit == "KB") factor = 1e3;
  if (unit == "MB") factor = 1e6;
  if (unit == "GB") factor = 1e9;
  if (unit == "TB") factor = 1e12;
  if (unit == "KIB") factor = 1024.0;
  if (unit == "MIB") factor = 1024.0 * 1024.0;
  if (unit == "GIB") factor = 1024.0 * 1024.0 * 1024.0;
  if (unit == "TIB") factor = 1024.0 * 1024.0 * 1024.0 * 1024.0;
  const double bytes = amount * factor;
  if (factor == 0.0 || bytes > 9.2e18) return failure;
  const auto whole = static_cast<std::int64_t>(bytes);
  // Accelerate's rule: only the decimal suffixes have a bit form (`Mb`, and so `mb`).
  const bool bits = unit.size() == 2 && rest.back() == 'b';
  return bits ? whole / 8 : whole;
}

std::string format_bytes(std::int64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KB", "MB", "GB", "TB", "PB", "EB"};
  double amount = static_cast<double>(bytes);
  int unit = 0;
  while (std::fabs(amount) >= 999.95 && unit < 6) {
    amount /= 1000.0;
    ++unit;
  }
  char buffer[48];
  std::snprintf(buffer, sizeof buffer, unit == 0 ? "%.0f %s" : "%.1f %s", amount, kUnits[unit]);
  return buffer;
}

std::string format_duration(double seconds) {
  char buffer[64];
  if (!std::isfinite(seconds)) return "?";
  if (seconds < 0) return "-" + format_duration(-seconds);
  if (seconds < 0.9995) {
    std::snprintf(buffer, sizeof buffer, "%.0f ms", seconds * 1e3);
  } else if (seconds < 59.95) {
    std::snprintf(buffer, sizeof buffer, "%.1f s", seconds);
  } else if (seconds < 3599.5) {
    const long whole = std::lround(seconds);
    std::snprintf(buffer, sizeof buffer, "%ld min %02ld s", whole / 60, whole % 60);
  } else if (seconds < 86400.0 - 30.0) {
    const long minutes = std::lround(seconds / 60.0);
    std::snprintf(buffer, sizeof buffer, "%ld h %02ld min", minutes / 60, minutes % 60);
  } else {
    const auto hours = static_cast<long long>(std::llround(std::min(seconds, 1e15) / 3600.0));
    std::snprintf(buffer, sizeof buffer, "%lld d %02lld h", hours / 24, hours % 24);
  }
  return buffer;
}

std::string format_count(double count) {
  static constexpr const char* kUnits[] = {"", " k", " M", " G", " T", " P"};
  if (!std::isfinite(count)) return "?";
  int unit = 0;
  double amount = count;
  while (std::fabs(amount) >= 999.5 && unit < 5) {
    amount /= 1000.0;
    ++unit;
  }
  const double size = std::fabs(amount);
  const bool whole = unit == 0 && amount == std::floor(amount);
  const int digits = whole || size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
  char buffer[48];
  std::snprintf(buffer, sizeof buffer, "%.*f%s", digits, amount, kUnits[unit]);
  return buffer;
}

}  // namespace runner::core

#include "runner/core/text/text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace runner::core {

std::string in_quotes(std::string_view text) { return '"' + std::string(text) + '"'; }

std::string lower(std::string_view text) {
  std::string lowered(text);
  for (char& c : lowered) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lowered;
}

std::string upper(std::string_view text) {
  std::string raised(text);
  for (char& c : raised) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return raised;
}

std::string_view trimmed(std::string_view text, std::string_view blanks) {
  const std::size_t begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

std::string short_number(double value, int digits) {
  if (std::isnan(value)) return "nan";  // printf shows its sign, which means nothing
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.*g", digits, value);
  return text.data();
}

std::string number_text(double value) {
  if (std::isnan(value)) return "nan";
  std::array<char, 40> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

std::string counted(std::int64_t count, std::string_view one, std::string_view many) {
  return std::to_string(count).append(" ").append(count == 1 ? one : many);
}

std::string counted_large(std::int64_t count, std::string_view one, std::string_view many) {
  return with_commas(count).append(" ").append(count == 1 ? one : many);
}

std::string with_commas(std::int64_t count) {
  std::string text = std::to_string(count);
  const std::size_t first_digit = count < 0 ? 1 : 0;
  for (std::size_t at = text.size(); at > first_digit + 3;) text.insert(at -= 3, 1, ',');
  return text;
}

std::string csv_field(std::string_view text, char separator) {
  if (text.find_first_of(std::string("\"\r\n") + separator) == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + "\"";
}

}  // namespace runner::core

#include "components/data/text_utils.h"

#include <charconv>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <system_error>
#include <vector>

#include "runner/core/text/suggest.h"
#include "runner/core/text/utf8.h"

namespace components::data {

double as_written(float value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  double exact = value;
  std::from_chars(text, end, exact);  // leaves it where it is no number
  return exact;
}

double rounded(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::general, 6).ptr;
  std::from_chars(text, end, value);
  return value;
}

std::string valid_utf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t length = runner::core::utf8_length(bytes, at);
    text += length == 0 ? std::string_view("\xEF\xBF\xBD") : bytes.substr(at, length);
    at += length == 0 ? 1 : length;
  }
  return text;
}

double entropy_of(std::span<const std::int64_t> counts) {
  const auto total = static_cast<double>(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
  double entropy = 0;
  for (const std::int64_t count : counts) {
    const double share = static_cast<double>(count) / total;
    if (count > 0) entropy -= share * std::log(share);
  }
  return entropy;
}

std::string where_paths_begin(const std::string& path) {
  std::error_code failed;
  if (std::filesystem::path(path).is_absolute()) return "";
  return "a path is relative to the current folder, " + std::filesystem::current_path(failed).string() +
         "; ${recipe_dir} is the folder of the recipe";
}

std::string missing_file_hint(const std::string& path) {
  namespace fs = std::filesystem;
  const fs::path wanted(path);
  const fs::path folder = wanted.has_parent_path() ? wanted.parent_path() : fs::path(".");
  std::error_code error;
  const std::string from = where_paths_begin(path);
  if (fs::is_directory(folder, error)) {
    std::vector<std::string> names;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
      names.push_back(it->path().filename().string());
    }
    const std::string near = runner::core::closest(wanted.filename().string(), names);
    if (near.empty()) return from;
    return "did you mean \"" + (wanted.parent_path() / near).string() + "\"?" + (from.empty() ? "" : " " + from);
  }
  return "no such folder \"" + folder.string() + "\"" + (from.empty() ? "" : "; " + from);
}

std::uint64_t stable_hash(std::string_view text) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  hash = (hash ^ (hash >> 30)) * 0xBF58476D1CE4E5B9ULL;
  hash = (hash ^ (hash >> 27)) * 0x94D049BB133111EBULL;
  return hash ^ (hash >> 31);
}

}  // namespace components::data

#include "runner/cli/draft/plain_text.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>

namespace runner::cli {
namespace {

constexpr int kLinesMax = 2000;  ///< that are looked at

std::ptrdiff_t columns_in(const std::string& line) {
  std::istringstream words(line);
  return std::count_if(std::istream_iterator<std::string>(words), {}, [](const std::string&) { return true; });
}

}  // namespace

bool is_plain_text(const std::string& path) {
  std::ifstream file(path);
  if (!path.ends_with(".txt") || !file) return false;
  std::ptrdiff_t columns = 0;
  bool has_columns = true, has_end = false;
  std::string line;
  for (int i = 0; i < kLinesMax && std::getline(file, line); ++i) {
    if (line.find('\t') != std::string::npos) return false;
    const std::ptrdiff_t own = columns_in(line);
    if (own == 0) {
      has_end = has_end || columns > 0;
      continue;
    }
    if (columns == 0 && (line.starts_with("{") || line.starts_with("["))) return false;
    if (columns == 0) columns = own;
    has_columns = has_columns && own == columns;
  }
  return columns > 0 && !(has_columns && has_end && columns > 1);
}

bool is_table_of_tabs(const std::string& path) {
  std::ifstream file(path);
  if (!path.ends_with(".txt") || !file) return false;
  std::string line;
  int lines = 0;
  for (; lines < kLinesMax && std::getline(file, line); ++lines) {
    if (line.find('\t') == std::string::npos) return false;
  }
  return lines > 1;
}

}  // namespace runner::cli

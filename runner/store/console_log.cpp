#include "runner/store/console_log.h"

#include <cstddef>
#include <cstdio>
#include <ctime>
#include <fstream>

#include "runner/core/json.h"
#include "runner/core/platform/files.h"

namespace runner::store {
namespace {

constexpr std::size_t kBytesMax = 4 << 20;  // of one reading; a longer line comes in pieces

/// Of `2027-01-15T08:00:00.000Z`; 0 for anything else.
std::int64_t utc_ms(const std::string& text) {
  std::tm parts{};
  int ms = 0, read = 0;
  std::sscanf(text.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ%n", &parts.tm_year, &parts.tm_mon, &parts.tm_mday,
              &parts.tm_hour, &parts.tm_min, &parts.tm_sec, &ms, &read);
  if (read == 0) return 0;
  parts.tm_year -= 1900;
  --parts.tm_mon;
  return static_cast<std::int64_t>(timegm(&parts)) * 1000 + ms;
}

/// `2027-01-15T08:00:00.000Z info the message`, as runner/core/log.h writes it; a line after the first of a message has
/// no such beginning.
ConsoleRow row_of_text(const std::string& line) {
  constexpr std::size_t kTimeBytes = 24;
  ConsoleRow row;
  row.text = line;
  const std::int64_t time_ms = line.size() > kTimeBytes ? utc_ms(line.substr(0, kTimeBytes)) : 0;
  if (time_ms == 0) return row;
  const std::size_t level_end = line.find(' ', kTimeBytes + 1);
  if (level_end == std::string::npos) return row;
  const std::string level = line.substr(kTimeBytes + 1, level_end - kTimeBytes - 1);
  row.time_ms = time_ms;
  row.is_warning = level == "warning" || level == "error";
  row.text = line.substr(level_end + 1);
  return row;
}

/// `{"time": ..., "level": ..., "message": ...}`.
ConsoleRow row_of_json(const std::string& line) {
  const auto node = core::parse_json(line);
  const auto text = [&node](const char* key) {
    const core::Node* value = node && node.value().is_mapping() ? node.value().find(key) : nullptr;
    return value != nullptr && value->is_string() ? value->as_string() : std::string();
  };
  const std::int64_t time_ms = utc_ms(text("time"));
  if (time_ms == 0) return {line, 0, false};
  return {text("message"), time_ms, text("level") == "warning" || text("level") == "error"};
}

}  // namespace

ConsoleRow console_row(const std::string& line) {
  return line.starts_with("{") ? row_of_json(line) : row_of_text(line);
}

std::vector<ConsoleRow> read_console(const std::string& run_dir, std::int64_t& from) {
  std::vector<ConsoleRow> rows;
  const std::string path = run_dir + "/logs/rank-0.log";
  if (!core::check_is_file(path)) return rows;
  std::ifstream file(path, std::ios::binary);
  if (!file.seekg(from)) return rows;
  std::string text(kBytesMax, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  std::size_t begin = 0;
  for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    rows.push_back(console_row(text.substr(begin, end - begin)));
  }
  if (rows.empty() && text.size() == kBytesMax) {
    rows.push_back(row_of_text(text));
    begin = text.size();
  }
  from += static_cast<std::int64_t>(begin);
  return rows;
}

}  // namespace runner::store

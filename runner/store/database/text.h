#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace runner::store {

/// `2026-11-21 07:27:31 UTC`.
std::string utc_text(std::int64_t wall_ms);

/// `2026-11-21T07:27:31Z`: sorts by time, and its beginnings are days and months.
std::string utc_stamp(std::int64_t wall_ms);
/// `2026-11-21`.
std::string utc_date(std::int64_t wall_ms);
/// User input of a time as a prefix of a utc_stamp(): `2026`, `2026-11-21`, `2026-11-21 08:30`; the words `today` and
/// `yesterday` unchanged. Nothing for other text.
std::optional<std::string> date_prefix(const std::string& text);

/// Eleven characters that sort by time: eight of milliseconds since 2025, three of chance. Digits and letters without
/// i, l, o and u, so that ids are easy to read and type. No `-`: a folder's name ends with one and the id.
std::string new_run_id(std::int64_t wall_ms);
inline constexpr int kRunIdLength = 11;

/// Parses the folder `<run_name>-<id>`; nothing when it does not end with an id.
struct FolderName {
  std::string run_name, id;
  std::int64_t created_ms;  ///< from the id
};
std::optional<FolderName> parse_folder_name(std::string_view folder);

}  // namespace runner::store

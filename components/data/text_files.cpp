#include "components/data/text_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <set>
#include <utility>

#include "components/data/block_location.h"
#include "components/data/text_utils.h"
#include "runner/core/platform/files.h"
#include "runner/core/table/table_file.h"
#include "runner/core/table/table_folder.h"
#include "runner/core/text/text.h"

namespace components::data {
namespace {

namespace fs = std::filesystem;
using runner::core::Failure;
using runner::core::Result;

bool is_pattern(const std::string& path) {
  std::error_code error;
  return path.find_first_of("*?[{") != std::string::npos && !fs::exists(path, error);
}

Result<std::int64_t> text_size(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) {
      return Failure{"no such file \"" + path + "\"", missing_file_hint(path)};
    }
    return Failure{"cannot read \"" + path + "\": " + std::strerror(errno), ""};
  }
  if (S_ISDIR(status.st_mode)) {
    const std::string folder = fs::path(path).has_filename() ? path + "/" : path;
    std::error_code failed;
    const fs::directory_iterator entries(path, failed);
    const bool has_files = std::any_of(fs::begin(entries), fs::end(entries), [](const fs::directory_entry& entry) {
      std::error_code unread;
      return entry.is_regular_file(unread);
    });
    const std::string of_it = has_files ? "\"" + folder + "*\" for the files in it, " : "";
    return Failure{"\"" + path + "\" is a folder, but samples are read from files",
                   "write " + of_it + "\"" + folder + "**/*\" for all below it"};
  }
  if (!S_ISREG(status.st_mode)) {
    return Failure{"\"" + path + "\" is not a regular file", "save its output in a file first"};
  }
  if (access(path.c_str(), R_OK) != 0) return Failure{"cannot read \"" + path + "\": " + std::strerror(errno), ""};
  return static_cast<std::int64_t>(status.st_size);
}

fs::path absolute(const std::string& path) { return (fs::current_path() / path).lexically_normal(); }

/// The folder of a pattern up to its first wildcard. A folder may have the characters of wildcards in its name.
fs::path base_of(const std::string& pattern) {
  const fs::path whole = absolute(pattern);
  fs::path base;
  std::error_code ignored;
  for (auto part = whole.begin(); part != whole.end() && std::next(part) != whole.end(); ++part) {
    const bool is_wild = part->string().find_first_of("*?[{") != std::string::npos;
    if (is_wild && !fs::is_directory(base / *part, ignored)) break;
    base /= *part;
  }
  return base;
}

/// A file that a pattern matched.
struct Match {
  fs::path path, base;  ///< absolute
  TextFile file;
};

/// The last `count` names of a path.
fs::path last_names(const fs::path& path, std::size_t count) {
  std::vector<fs::path> names(path.begin(), path.end());
  fs::path last;
  for (std::size_t i = names.size() - std::min(count, names.size()); i < names.size(); ++i) last /= names[i];
  return last;
}

/// How many of their last names tell these folders apart.
std::size_t distinct_names(const std::set<fs::path>& folders) {
  for (std::size_t count = 0;; ++count) {
    std::set<fs::path> seen;
    bool whole = true;  // every name of each is in use
    for (const fs::path& folder : folders) {
      seen.insert(last_names(folder, count));
      whole = whole && count >= static_cast<std::size_t>(std::distance(folder.begin(), folder.end()));
    }
    if (seen.size() == folders.size() || whole) return count;
  }
}

/// Each file once, with its key, in their order, without those of `left_out`. A file of several patterns belongs to the
/// one with the outermost base, so that the order of the patterns does not matter.
std::vector<TextFile> keyed(std::vector<Match> matches, const std::set<fs::path>& left_out) {
  std::sort(matches.begin(), matches.end(), [](const Match& a, const Match& b) {
    return a.path != b.path ? a.path < b.path : a.base.native().size() < b.base.native().size();
  });
  const auto same = [](const Match& a, const Match& b) { return a.path == b.path; };
  matches.erase(std::unique(matches.begin(), matches.end(), same), matches.end());
  std::set<fs::path> bases;
  for (const Match& match : matches) bases.insert(match.base);
  const std::size_t count = distinct_names(bases);
  std::vector<TextFile> files;
  for (Match& match : matches) {
    if (left_out.count(match.path) > 0) continue;
    match.file.key = (last_names(match.base, count) / match.path.lexically_relative(match.base)).generic_string();
    files.push_back(std::move(match.file));
  }
  std::stable_sort(files.begin(), files.end(), [](const TextFile& a, const TextFile& b) { return a.key < b.key; });
  return files;
}

/// The files of one entry of `path`; reports an error if there are none.
/// The files that a pattern names.
Result<std::vector<std::string>> paths_of(const std::string& pattern, FileKind kind) {
  if (is_pattern(pattern)) return runner::core::glob(pattern);
  if (kind == FileKind::kRecords && runner::core::is_table_folder(pattern)) return runner::core::table_files(pattern);
  return std::vector<std::string>{pattern};
}

void add_matches(const std::string& pattern, std::size_t index, FileKind kind, const Inputs& inputs,
                 std::vector<Match>& matches) {
  const runner::core::Location location = location_of(inputs.block, "path", index);
  const bool is_glob = is_pattern(pattern);
  const auto named = paths_of(pattern, kind);
  if (!named) {
    inputs.diagnostics.error(location, named.failure().message, named.failure().hint);
    return;
  }
  const std::vector<std::string>& paths = named.value();
  if (paths.empty()) {
    const std::size_t wild = pattern.find_first_of("*?[{", runner::core::literal_folder(pattern));
    const fs::path fixed(pattern.substr(0, wild));
    const std::string folder = fixed.parent_path().empty() ? "." : fixed.parent_path().string();
    std::error_code error;
    const bool exists = fs::is_directory(folder, error);
    const std::string where = where_paths_begin(pattern);
    inputs.diagnostics.error(location, "no file matches \"" + pattern + "\"",
                             (exists ? "`*` does not cross folders, `**` does" : "no such folder \"" + folder + "\"") +
                                 (where.empty() ? "" : "; " + where));
    return;
  }
  const fs::path base = is_glob ? base_of(pattern) : absolute(pattern).parent_path();
  for (const std::string& path : paths) {
    if (kind == FileKind::kBytes && runner::core::is_table_path(path)) {
      inputs.diagnostics.error(location, "\"" + path + "\" is a Parquet or Arrow file, not text", "use type: jsonl");
      continue;
    }
    const Result<std::int64_t> size = text_size(path);
    if (!size) {
      inputs.diagnostics.error(location, size.failure().message, size.failure().hint);
      continue;
    }
    if (size.value() == 0 && !is_glob) inputs.diagnostics.error(location, "\"" + path + "\" is empty", "");
    matches.push_back({absolute(path), base, {path, "", size.value()}});
  }
}

constexpr double kRecordsMax = 1e15;

double number(std::string_view text) {
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// One side of a slice: `5%`, `2.5%`, `-100`, `1_000`. Nothing for another text.
std::optional<std::pair<double, bool>> slice_bound(std::string_view text) {
  const bool is_percent = text.ends_with('%');
  if (is_percent) text.remove_suffix(1);
  std::string digits(text);
  std::erase(digits, '_');
  double value = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (failed != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  if (!is_percent && (value != std::floor(value) || std::abs(value) > kRecordsMax)) return std::nullopt;
  return std::pair(value, is_percent);
}

Failure wrong_slice(const std::string& text, const std::string& why) {
  return {"split \"" + text + "\" " + why, "write a slice such as \"[:5%]\", \"[10%:20%]\" or \"[:1000]\""};
}

}  // namespace

std::int64_t SplitRange::place(const Bound& bound, std::int64_t whole) const {
  if (!is_slice_) {
    return static_cast<std::int64_t>(static_cast<long double>(whole) * static_cast<long double>(bound.number) / 100.0L);
  }
  // As `datasets` rounds: to the nearest, and to the even one of two.
  double at = bound.is_percent ? std::nearbyint(bound.number * static_cast<double>(whole) / 100.0) : bound.number;
  if (at < 0) at = std::max(static_cast<double>(whole) + at, 0.0);
  return std::min(static_cast<std::int64_t>(at), whole);
}

std::int64_t SplitRange::begin(std::int64_t whole) const { return std::min(place(from_, whole), end(whole)); }

std::int64_t SplitRange::end(std::int64_t whole) const { return place(to_, whole); }

Result<SplitRange> parse_split(const std::string& text) {
  SplitRange range;
  range.is_slice_ = text.starts_with('[') && text.ends_with(']');
  const std::string_view inside =
      range.is_slice_ ? std::string_view(text).substr(1, text.size() - 2) : std::string_view(text);
  const std::size_t colon = inside.find(':');
  if (colon == std::string_view::npos) return wrong_slice(text, "has no colon");
  const std::string_view first = inside.substr(0, colon), last = inside.substr(colon + 1);
  for (const auto& [side, bound] : {std::pair(first, &range.from_), std::pair(last, &range.to_)}) {
    if (side.empty()) continue;
    if (!range.is_slice_) {
      bound->number = number(side);
      continue;
    }
    const auto read = slice_bound(side);
    if (!read) return wrong_slice(text, "is no slice");
    *bound = {read->first, read->second};
    if (bound->is_percent && std::abs(bound->number) > 100) return wrong_slice(text, "has more than 100%");
  }
  if (!first.empty() && !last.empty() && range.from_.is_percent != range.to_.is_percent) {
    return wrong_slice(text, "has percent on one side and a number on the other");
  }
  const bool is_comparable = range.from_.is_percent == range.to_.is_percent &&
                             std::signbit(range.from_.number) == std::signbit(range.to_.number);
  if (is_comparable && range.from_.number >= range.to_.number) {
    return Failure{"split \"" + text + "\" is empty: its end is not after its start",
                   range.is_slice_ ? "write the smaller number first, such as \"[10%:20%]\""
                                   : "write the smaller percentage first, such as \"10%:20%\""};
  }
  return range;
}

std::vector<TextFile> find_text_files(const std::vector<std::string>& patterns, const std::vector<std::string>& exclude,
                                      FileKind kind, const Inputs& inputs) {
  std::vector<Match> found;
  const int errors = inputs.diagnostics.error_count();
  for (std::size_t i = 0; i < patterns.size(); ++i) add_matches(patterns[i], i, kind, inputs, found);
  if (inputs.diagnostics.error_count() > errors) return {};

  std::set<fs::path> left_out;
  for (const std::string& pattern : exclude) {
    const std::vector<std::string> paths =
        is_pattern(pattern) ? runner::core::glob(pattern) : std::vector<std::string>{pattern};
    for (const std::string& path : paths) left_out.insert(absolute(path));
  }
  const auto all = static_cast<std::int64_t>(found.size());
  std::vector<TextFile> files = keyed(std::move(found), left_out);
  const std::int64_t bytes = total_bytes(files);
  if (files.empty()) {
    inputs.diagnostics.error(location_of(inputs.block, "exclude"),
                             "exclude removes all " + counted_large(all, "file", "files") + " of data." + inputs.name);
  } else if (bytes == 0) {
    inputs.diagnostics.error(location_of(inputs.block, "path"),
                             "the " + counted_large(static_cast<std::int64_t>(files.size()), "file", "files") +
                                 " of data." + inputs.name + " have no bytes");
    files.clear();
  }
  return files;
}

std::int64_t total_bytes(const std::vector<TextFile>& files) {
  std::int64_t bytes = 0;
  for (const TextFile& file : files) bytes += file.bytes;
  return bytes;
}

std::vector<TextFile> split_files(std::vector<TextFile> files, const SplitRange& range) {
  std::sort(files.begin(), files.end(), [](const TextFile& a, const TextFile& b) {
    const std::uint64_t hash_a = stable_hash(a.key);
    const std::uint64_t hash_b = stable_hash(b.key);
    return hash_a != hash_b ? hash_a < hash_b : a.key < b.key;
  });
  const auto count = static_cast<std::int64_t>(files.size());
  std::vector<TextFile> part(files.begin() + range.begin(count), files.begin() + range.end(count));
  std::sort(part.begin(), part.end(), [](const TextFile& a, const TextFile& b) { return a.key < b.key; });
  return part;
}

std::optional<SplitRange> apply_split(const std::optional<std::string>& split, bool by_files, const char* unit,
                                      std::vector<TextFile>& files, const Inputs& inputs) {
  SplitRange range;
  if (split) {
    const auto parsed = parse_split(*split);
    if (!parsed) {
      inputs.diagnostics.error(location_of(inputs.block, "split"), parsed.failure().message, parsed.failure().hint);
      return std::nullopt;
    }
    range = parsed.value();
  }
  if (!by_files) return range;
  if (range.is_slice()) {
    inputs.diagnostics.error(
        location_of(inputs.block, "split"),
        "split \"" + *split + "\" takes records in their order, and split_by is files, which takes whole files",
        std::string("use split_by: ") + unit + ", or a range of percent such as \":90%\"");
    return std::nullopt;
  }
  const auto whole = static_cast<std::int64_t>(files.size());
  files = split_files(std::move(files), range);
  if (!files.empty()) return SplitRange{};
  inputs.diagnostics.error(
      location_of(inputs.block, "split"),
      "split \"" + split.value_or(":") + "\" of " + counted_large(whole, "file", "files") + " has no whole file",
      std::string("use a larger fraction, or split_by: ") + unit);
  return std::nullopt;
}

bool takes_lines(const SplitRange& range, std::int64_t lines, const Inputs& inputs) {
  if (lines == 0 || range.begin(lines) < range.end(lines)) return true;
  inputs.diagnostics.error(location_of(inputs.block, "split"),
                           "data." + inputs.name + ".split takes none of " + counted_large(lines, "line", "lines"),
                           "use a larger part, or one that begins earlier");
  return false;
}

}  // namespace components::data

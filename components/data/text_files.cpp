#include "components/data/text_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <set>

#include "components/data/block_location.h"
#include "components/data/text_utils.h"
#include "runner/core/platform/files.h"
#include "runner/core/text.h"

namespace components::data {
namespace {

namespace fs = std::filesystem;
using runner::core::Failure;
using runner::core::Result;

std::string key_of(const std::string& path) {
  const fs::path here = fs::current_path();
  return (here / path).lexically_normal().lexically_relative(here).string();
}

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
    return Failure{"\"" + path + "\" is a folder, but samples are read from files",
                   "write \"" + folder + "*\" for the files in it, \"" + folder + "**/*\" for all below it"};
  }
  if (!S_ISREG(status.st_mode)) {
    return Failure{"\"" + path + "\" is not a regular file", "save its output in a file first"};
  }
  if (access(path.c_str(), R_OK) != 0) return Failure{"cannot read \"" + path + "\": " + std::strerror(errno), ""};
  return static_cast<std::int64_t>(status.st_size);
}

/// The files of one entry of `path`; reports an error if there are none.
void add_matches(const std::string& pattern, std::size_t index, const Inputs& inputs, std::vector<TextFile>& files) {
  const runner::core::Location location = location_of(inputs.block, "path", index);
  const bool is_glob = is_pattern(pattern);
  const std::vector<std::string> paths = is_glob ? runner::core::glob(pattern) : std::vector<std::string>{pattern};
  if (paths.empty()) {
    const fs::path fixed(pattern.substr(0, pattern.find_first_of("*?[{")));
    const std::string folder = fixed.parent_path().empty() ? "." : fixed.parent_path().string();
    std::error_code error;
    const bool exists = fs::is_directory(folder, error);
    inputs.diagnostics.error(location, "no file matches \"" + pattern + "\"",
                             exists
                                 ? "`*` does not cross folders, `**` does; a path is relative to the current folder, "
                                   "${recipe_dir} is the folder of the recipe"
                                 : "no such folder \"" + folder +
                                       "\"; a path is relative to the current folder, "
                                       "${recipe_dir} is the folder of the recipe");
    return;
  }
  for (const std::string& path : paths) {
    const Result<std::int64_t> size = text_size(path);
    if (!size) {
      inputs.diagnostics.error(location, size.failure().message, size.failure().hint);
      continue;
    }
    if (size.value() == 0 && !is_glob) inputs.diagnostics.error(location, "\"" + path + "\" is empty", "");
    files.push_back({path, key_of(path), size.value()});
  }
}

long double percent(std::string_view text) {
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

std::int64_t PercentRange::boundary(std::int64_t whole, long double p) {
  return static_cast<std::int64_t>(static_cast<long double>(whole) * p / 100.0L);
}

Result<PercentRange> parse_split(const std::string& text) {
  const std::size_t colon = text.find(':');
  PercentRange range;
  if (colon > 0) range.from = percent(std::string_view(text).substr(0, colon));
  if (colon + 1 < text.size()) range.to = percent(std::string_view(text).substr(colon + 1));
  if (range.from >= range.to) {
    return Failure{"split \"" + text + "\" is empty: its end is not after its start",
                   "write the smaller percentage first, such as \"10%:20%\""};
  }
  return range;
}

std::vector<TextFile> find_text_files(const std::vector<std::string>& patterns, const std::vector<std::string>& exclude,
                                      const Inputs& inputs) {
  std::vector<TextFile> found;
  const int errors = inputs.diagnostics.error_count();
  for (std::size_t i = 0; i < patterns.size(); ++i) add_matches(patterns[i], i, inputs, found);
  if (inputs.diagnostics.error_count() > errors) return {};

  std::set<std::string> left_out;
  for (const std::string& pattern : exclude) {
    const std::vector<std::string> paths =
        is_pattern(pattern) ? runner::core::glob(pattern) : std::vector<std::string>{pattern};
    for (const std::string& path : paths) left_out.insert(key_of(path));
  }
  std::sort(found.begin(), found.end(), [](const TextFile& a, const TextFile& b) { return a.key < b.key; });
  std::vector<TextFile> files;
  std::int64_t bytes = 0;
  for (TextFile& file : found) {
    if (left_out.count(file.key) > 0 || (!files.empty() && files.back().key == file.key)) continue;
    bytes += file.bytes;
    files.push_back(std::move(file));
  }
  if (files.empty()) {
    inputs.diagnostics.error(location_of(inputs.block, "exclude"),
                             "exclude removes all " +
                                 counted_large(static_cast<std::int64_t>(found.size()), "file", "files") + " of data." +
                                 inputs.name);
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

std::vector<TextFile> split_files(std::vector<TextFile> files, const PercentRange& range) {
  std::sort(files.begin(), files.end(), [](const TextFile& a, const TextFile& b) {
    const std::uint64_t hash_a = stable_hash(a.key);
    const std::uint64_t hash_b = stable_hash(b.key);
    return hash_a != hash_b ? hash_a < hash_b : a.key < b.key;
  });
  const auto count = static_cast<std::int64_t>(files.size());
  std::vector<TextFile> part(files.begin() + PercentRange::boundary(count, range.from),
                             files.begin() + PercentRange::boundary(count, range.to));
  std::sort(part.begin(), part.end(), [](const TextFile& a, const TextFile& b) { return a.key < b.key; });
  return part;
}

std::optional<PercentRange> apply_split(const std::optional<std::string>& split, bool by_files, const char* unit,
                                        std::vector<TextFile>& files, const Inputs& inputs) {
  PercentRange range;
  if (split) {
    const auto parsed = parse_split(*split);
    if (!parsed) {
      inputs.diagnostics.error(location_of(inputs.block, "split"), parsed.failure().message, parsed.failure().hint);
      return std::nullopt;
    }
    range = parsed.value();
  }
  if (!by_files) return range;
  const auto whole = static_cast<std::int64_t>(files.size());
  files = split_files(std::move(files), range);
  if (!files.empty()) return PercentRange{};
  inputs.diagnostics.error(
      location_of(inputs.block, "split"),
      "split \"" + split.value_or(":") + "\" of " + counted_large(whole, "file", "files") + " has no whole file",
      std::string("use a larger fraction, or split_by: ") + unit);
  return std::nullopt;
}

}  // namespace components::data

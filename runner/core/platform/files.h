#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runner/core/result.h"

namespace runner::core {

/// Whole content of a regular file. Failure names the path: missing, unreadable, a directory, larger than `bytes_max`.
Result<std::string> read_file(const std::string& path, std::int64_t bytes_max);

/// For what opens a file by other means: Failure, naming the path, where something else lies there than a regular file,
/// such as a FIFO, whose opening would wait for a writer. That nothing is there is left to the opening.
Result<void> check_is_file(const std::string& path);

/// Writes to a temporary file, fsyncs, renames, fsyncs the folder: readers see the old or the new content, never a
/// part. A link is replaced; what is no regular file, or leads to none, is a Failure and stays. A full disk is a
/// Failure with the exit status for "resumable".
Result<void> write_file_atomic(const std::string& path, const std::string& content);
/// Whether a file of this name was left by a killed write_file_atomic().
bool is_temporary_file(std::string_view name);

/// Where a file that a user names is written. Links are followed, to a file that does not exist yet, too.
struct OutputTarget {
  std::string path;          ///< what may be renamed to, unless it is written in place
  bool is_in_place = false;  ///< a device, a pipe, a socket or an open file: nothing may take its name
  int descriptor = -1;       ///< of an open file of this process, such as /dev/stdout names; -1: none
};
/// Failure names the path: a folder, links in a circle, not readable.
Result<OutputTarget> output_target(const std::string& path);
/// Opens what is written in place. Failure names the path; the caller closes.
Result<int> open_in_place(const OutputTarget& target);

/// write_file_atomic() for a file named by a user, or in place where output_target() says so.
Result<void> write_output(const std::string& path, const std::string& content);

/// Creates a folder and its missing parents; does nothing if it exists. The Failure names the path.
Result<void> make_folders(const std::string& path);

/// Sorted names of a folder's entries; none when there is no such folder. Failure names the path.
Result<std::vector<std::string>> list_folder(const std::string& path);

/// How much of a pattern, with its slash, is the path of a folder that is there, so that brackets and braces in its
/// name are no pattern; `*` and `?` always are. 0 for none.
std::size_t literal_folder(const std::string& pattern);

/// Paths that match a shell pattern with `*`, `?`, `[...]`, `**` (any depth) and `{a,b}`; sorted, files only. A folder
/// that has the brackets in its name (literal_folder()) comes before one that would match them. A pattern without such
/// characters is returned as it is, whether the file exists or not.
std::vector<std::string> glob(const std::string& pattern);

}  // namespace runner::core

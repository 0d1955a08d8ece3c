#pragma once

#include <string>

namespace runner::store {

/// Puts a file in place of what is there: readers see the old or the new content, never a part, and so does whoever
/// comes after a kill. The system writes it to the disk when it sees fit, so that a power cut may take it. SqliteError
/// names the path, for it is waited for as a database is.
void write_light(const std::string& path, const std::string& content);

}  // namespace runner::store

#pragma once

#include <string>

namespace runner::store {

/// Replaces a file atomically: readers see the old or the new content, never a part, also after a kill. Not fsynced, so
/// a power cut may lose it. SqliteError names the path, as callers retry it like a database.
void write_unsynced(const std::string& path, const std::string& content);

}  // namespace runner::store

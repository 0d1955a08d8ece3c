#pragma once

#include <string>

namespace runner::registry {

/// A `pattern` of a schema must read the same for an editor (ECMAScript) and here (POSIX extended expressions, which
/// neither recurse on long text nor cost start-up time): no `\d` and the like, no `(?:`, no lazy `*?`.
bool is_pattern(const std::string& pattern);

/// Whether a part of `text` matches; anchors are the pattern's own. RUNNER_ASSERT when it is no pattern.
bool matches_pattern(const std::string& text, const std::string& pattern);

}  // namespace runner::registry

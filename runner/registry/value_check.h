#pragma once

#include <string>

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "runner/registry/fragment.h"

namespace runner::registry {

/// Whether one scalar (boolean, number, text, interval, duration, bytes, path, secret) is what `property` wants; says
/// so at the value's location when not. `path` is how messages name it. A number without a fraction is taken for an
/// integer and `value` becomes one. `word_hint`: for a word that is none of the
/// values; "" lets it follow from them.
bool check_scalar(core::Node& value, const Property& property, const std::string& path, const core::Hint& word_hint,
                  core::Diagnostics& diagnostics);

/// `an integer`, `true or false`, `a list`, `one of relu, gelu`: what `property` wants, after "must be".
std::string wanted(const Property& property);

/// `at least 1`, `greater than 0 and at most 1`; "" without bounds.
std::string bounds_text(const Property& property);

/// Refuses text that has the shape of a well-known key, and plain text under names like `api_key` in `vars`: recipes
/// are copied into runs, logs and repositories.
void check_plain_secrets(const core::Node& root, core::Diagnostics& diagnostics);

/// The same for a key without a schema: true when there was one, so that it is not quoted.
bool check_plain_secrets(const core::Node::Entry& entry, const std::string& path, core::Diagnostics& diagnostics);

/// A text as a recipe would write it: parts from the environment are their references, `${env:NAME}`.
std::string with_environment_references(const core::Node& value);

/// The excerpt of a message would print a secret again, so the location keeps its numbers but not its text.
core::Location without_text(const core::Location& location);

/// A history step for a value from the environment.
bool came_from_environment(const core::Node& value, std::string* reference = nullptr);

}  // namespace runner::registry

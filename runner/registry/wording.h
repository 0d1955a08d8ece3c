#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runner/core/node.h"
#include "runner/registry/fragment.h"

namespace runner::registry {

/// Describes a value in a message: `"ten"`, `2.5`, `true`, `a list`, `an empty mapping`, `nothing`. Long text is cut.
std::string described(const core::Node& value);

/// `"text"`, cut after 60 characters.
std::string quoted(std::string_view text);

/// `a, b and c` (or another last word), at most `shown_max` of them and then how many more there are.
std::string enumerated(const std::vector<std::string>& words, std::string_view last = "and",
                       std::size_t shown_max = 12);

/// `did you mean "adam" or "adamw"?`; empty for no words. Several are as likely, so that the choice is the user's.
core::Hint did_you_mean(const std::vector<std::string>& words);

/// What one component of the kind is called in a sentence: `optimizer`, `data set`.
std::string kind_word(std::string_view kind);
/// With its article: `an optimizer`.
std::string a_kind(std::string_view kind);

/// `training.max_steps`; `key` alone at the top level.
std::string joined_path(std::string_view block, std::string_view key);

/// The kinds of data that a tracker keeps, and those it does not: `scalars and texts; no images, tables and artifacts`.
std::string kept_text(const Fragment& tracker);

/// When `trackers: all` includes a tracker: `includes it if this is found: COMET_API_KEY`.
std::string taken_text(const Fragment& tracker);

/// Whether a flag or an environment variable set it: they override the recipe, also under an alias of the key.
bool is_override(const core::Node::Entry& entry);

/// `line 14` when both stand in one file, else the whole location.
std::string line_beside(const core::Location& location, const core::Location& other);

}  // namespace runner::registry

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"

namespace runner::recipe {

/// A key with another name in an earlier version, at the same path. Data recorded under the old name are read under the
/// new one: recipes of runs, variants of a sweep, filters. The recipe hash keeps the old word, so that
/// the hashes of all versions can be compared. The fragment has the old word in `x-aliases` too, for editors and
/// reference.
struct RenamedKey {
  std::string_view section, old_name, new_name;
};

const std::vector<RenamedKey>& renamed_keys();

/// Renames the old words of a recipe, written or settled, and those in the paths of its sweep. An old word beside the
/// new one stays: validation names both. Each renamed key gives a notice to `diagnostics` unless that is null.
void rename_keys(core::Node& recipe, core::Diagnostics* diagnostics = nullptr);
/// The same of a path: `loader.pad_in_loss`. Other paths come back as they are.
std::string renamed_path(std::string_view path);
/// The same of every path in a text: a constraint, a variant.
std::string renamed_text(std::string_view text);

/// The word that runs recorded before the rename have; "" where the path was never renamed.
std::string former_path(std::string_view path);
/// The opposite of rename_keys(), for the hash.
void restore_former_keys(core::Node& recipe);

}  // namespace runner::recipe

#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "runner/registry/fragment.h"

namespace runner::registry {

/// One embedded fragment, as schema_gen writes it into generated/base/fragments.cpp.
struct EmbeddedFragment {
  std::string_view kind, name, json;
};
struct Embedded {
  std::vector<EmbeddedFragment> fragments;
  std::string_view kinds_json;
  std::string_view aliases_json;           ///< schemas/aliases.json: other frameworks' words
  std::string_view first_defaults_json{};  ///< the part `later` of schemas/hashed_keys.json
};

/// The tables of everything a recipe can name. Fragments are parsed when first asked for (a `list` needs titles only),
/// so that start-up stays in single milliseconds. Plugins add theirs at run time with `add`.
class Registry {
 public:
  explicit Registry(const Embedded& embedded);

  /// The tables of this build (generated/base/fragments.cpp).
  static Registry& builtin();

  const std::vector<Kind>& kinds() const;
  const Kind* find_kind(std::string_view kind) const;
  /// Names of a kind in alphabetical order; of the sections for "section".
  std::vector<std::string> names(std::string_view kind) const;
  /// Null when unknown. The pointer stays valid.
  const Fragment* find(std::string_view kind, std::string_view name) const;
  /// The keys that every component of the kind accepts in addition to its own (schemas/section/<kind>_common.json);
  /// null when none.
  const Fragment* common(std::string_view kind) const;
  /// schemas/aliases.json as it was given; registry/alias.h reads it.
  std::string_view aliases_json() const { return aliases_json_; }
  /// The names a user most likely meant, one as likely as the other; looks through other programs' names, too.
  std::vector<std::string> suggestions(std::string_view kind, std::string_view name) const;
  /// The only one of them; "" when there are none or several.
  std::string suggest(std::string_view kind, std::string_view name) const;

  /// Joins a plugin's fragment. Failures (unknown kind, name taken, bad fragment) go to `diagnostics`.
  bool add(const std::string& kind, const std::string& name, const std::string& file_name, const std::string& json,
           core::Diagnostics& diagnostics);

 private:
  struct Slot;
  std::vector<Kind> kinds_;
  std::string_view aliases_json_;
  core::Node first_defaults_;
  std::map<std::string, std::map<std::string, std::shared_ptr<Slot>, std::less<>>, std::less<>> slots_;
  mutable std::mutex mutex_;
};

/// Written by schema_gen; in libroux_base.so only.
const Embedded& embedded_fragments();

}  // namespace runner::registry

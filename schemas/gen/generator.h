#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runner/core/diagnostics.h"
#include "runner/registry/fragment.h"
#include "runner/registry/registry.h"

namespace schemas::gen {

/// Everything under schemas/, read and checked.
struct Schemas {
  std::vector<runner::registry::Kind> kinds;
  std::map<std::string, std::vector<runner::registry::Fragment>> fragments;  ///< by kind, "section" too; sorted by name
  std::string kinds_json;
  std::string aliases_json;
  std::string hashed_keys_json;     ///< as it is committed; "" where it is missing
  std::string first_defaults_json;  ///< its part `later`, as the program gets it

  const std::vector<runner::registry::Fragment>& of(const std::string& kind) const;
};

/// generated/... path -> text. A map, so that the order never depends on the file system.
using Outputs = std::map<std::string, std::string>;

/// `<kind>/<name>.h`: Config, enums, the declarations of parse_config() and make().
void write_config_header(const runner::registry::Fragment& fragment, const runner::registry::Kind* kind,
                         Outputs& outputs, runner::core::Diagnostics& diagnostics);
/// `base/configs_<kind>.cpp`: the parsers of one kind in one translation unit.
void write_parsers(const std::string& kind, const std::vector<runner::registry::Fragment>& fragments, Outputs& outputs);
/// `engine/make_<kind>.cpp` or `roux/make_<kind>.cpp`: build(), by a table of every make().
void write_make_table(const runner::registry::Kind& kind, const std::vector<runner::registry::Fragment>& fragments,
                      Outputs& outputs);
/// `schemas/hashed_keys.json`: what is committed and, after it, the keys that the fragments have in addition.
void write_hashed_keys(const std::string& path, const runner::registry::Registry& registry, Schemas& schemas,
                       Outputs& outputs, runner::core::Diagnostics& diagnostics);
/// `base/fragments.cpp`: the texts themselves.
void write_embedded(const Schemas& schemas, Outputs& outputs);
/// `reference/*.md`.
void write_reference(const Schemas& schemas, Outputs& outputs);

}  // namespace schemas::gen

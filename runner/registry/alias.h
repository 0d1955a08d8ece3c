#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"

namespace runner::registry {

/// Another name of a key of the recipe: `learning_rate` for `optimizer.lr`.
struct Alias {
  std::string word;
  std::vector<std::string> at;                              ///< sections where people write it; "" is the top level
  std::string path;                                         ///< `optimizer.lr`
  std::vector<std::pair<std::string, std::string>> values;  ///< written -> ours; empty: taken as it is
  /// What a number with a fraction means there: "epoch", a part of one, up to 1; "all", a part of all, of which 1.0
  /// stands for the key's null. "": it has no meaning of its own.
  std::string fraction;
};

/// A word of other frameworks without an equivalent: what to write instead, or that it does not exist yet.
struct ForeignWord {
  std::string word;
  std::vector<std::string> at;  ///< sections where the hint applies; empty: anywhere
  std::string hint;
};

/// schemas/aliases.json:
///
///   {"aliases": [{"word": "mixed_precision", "at": ["", "training"], "path": "precision.mode",
///                 "values": {"no": "32-true", "bf16": "bf16-mixed"}}],
///    "foreign": [{"word": "report_to", "hint": "..."}]}
struct AliasTable {
  std::vector<Alias> aliases;
  std::vector<ForeignWord> foreign;

  const Alias* find(std::string_view section, std::string_view word) const;
  const ForeignWord* find_foreign(std::string_view section, std::string_view word) const;
};

/// Errors in the table are bugs in roux: they are reported with the line of the file (schema_gen stops on them).
AliasTable parse_aliases(std::string_view json, core::Diagnostics& diagnostics);

}  // namespace runner::registry

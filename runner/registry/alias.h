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
  std::vector<std::string> at;  ///< sections where people write it; "" is the top level
  /// `optimizer.lr`; `adapters[lora].r` is that key in the block of type lora of a list, which has one block then.
  std::string path;
  /// written -> ours, "" for none; empty: taken as it is
  std::vector<std::pair<std::string, std::string>> values;
  std::vector<std::pair<std::string, std::string>> refused;  ///< value -> hint
  /// What a number with a fraction means there: "epoch", a part of one, up to 1; "all", a part of all, of which 1.0
  /// stands for the key's null. "": it has no meaning of its own.
  std::string fraction;
  bool list = false;  ///< a text that `values` lacks is a list, with commas between its items
};

/// `optimizer` of `optimizer.lr`, `adapters` of `adapters[lora].r`.
std::string section_of(std::string_view alias_path);
/// `adapters[0].r`: how messages and pages write the path.
std::string shown_path(std::string_view alias_path);

/// A word of other frameworks without an equivalent: what to write instead, or that it does not exist yet.
struct ForeignWord {
  std::string word;
  std::vector<std::string> at;  ///< sections where the hint applies; empty: anywhere
  core::Hint hint;
};

/// schemas/aliases.json:
///
///   {"aliases": [{"word": "mixed_precision", "at": ["", "training"], "path": "precision.mode",
///                 "values": {"no": "32-true", "bf16": "bf16-mixed"}},
///                {"word": "adapter", "at": [""], "path": "adapters[lora].type", "values": {"lora": "lora"},
///                 "refused": {"qlora": "..."}}],
///    "foreign": [{"word": "report_to", "hint": "..."}]}
struct AliasTable {
  std::vector<Alias> aliases;
  std::vector<ForeignWord> foreign;

  const Alias* find(std::string_view section, std::string_view word) const;
  const ForeignWord* find_foreign(std::string_view section, std::string_view word) const;
  /// Of a row that names the key, or the one above it: `"at": ["value of precision.mode"]`.
  const ForeignWord* find_value(std::string_view key, std::string_view word) const;
};

class Registry;

/// Words of FSDP and DeepSpeed at the top level of a recipe; runner/resolve/sharding/ reads what is in them.
inline constexpr const char* kShardingWords[] = {"fsdp",       "fsdp_config",       "sharding_strategy", "deepspeed",
                                                 "zero_stage", "zero_optimization", "deepspeed_config"};

/// A block may stand as a bare name, a section as the value of its short form: then `value` becomes the mapping, to
/// which a key can be added.
void expand_short_form(core::Node& value, const std::string& section, const Registry& registry);
/// Sets `section.key` of a recipe; nothing where a section is no mapping, which is an error of the checks after it.
void put_setting(core::Node& root, const std::string& path, core::Node value, const core::Location& key_location,
                 const Registry& registry);

/// Errors in the table are bugs in roux: they are reported with the line of the file (schema_gen stops on them).
AliasTable parse_aliases(std::string_view json, core::Diagnostics& diagnostics);

}  // namespace runner::registry

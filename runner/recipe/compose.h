#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "runner/recipe/read.h"

namespace runner::recipe {

/// One change from the command line, in the order given.
struct Override {
  enum class Kind {
    kSet,      ///< `--set a.b[2].c=value`; `--set +a.list=value` appends; `--set ~a.key` deletes
    kDefault,  ///< the same, only where the recipe has no value, null or `auto`
    kSetFile,  ///< `--set-file FILE`: a mapping merged like one more `extends`
  };
  Kind kind = Kind::kSet;
  std::string text;
  std::string shown_as = {};  ///< name in messages, for another flag or a variable; "" is `--set TEXT`
};

/// Of a command that applies a model and trains none: what a training alone reads may be missing in the recipe.
struct Use {
  std::string data_set = {};  ///< of the recipe, whose samples the model gets; "": none, or its first one
  std::string new_rows = {};  ///< a file of them; ""
};

struct ComposeOptions {
  std::string below = {};  ///< a file with defaults for the recipe; "" for none
  std::vector<Override> overrides;
  std::map<std::string, std::string> ext;  ///< `--ext name=value` for Jsonnet's std.extVar
  Limits limits;
  std::optional<Use> use = {};  ///< nothing: the recipe is for a training
};

/// Sizes in the recording of a run, which a changed recipe would settle again. Nothing: of a version that took the
/// micro-batches of one process for them.
struct Recording {
  std::optional<std::int64_t> counted_batch_size;  ///< of `eval`
  std::optional<std::int64_t> bn_batch_size;       ///< of `weight_averaging`
};

/// A recipe with everything it extends merged, overrides applied and `${...}` replaced; not yet checked by schemas.
struct Composed {
  core::Node root;                                           ///< `extends` removed; `vars` kept
  std::vector<std::shared_ptr<const core::Source>> sources;  ///< every file that took part, the recipe first
  std::string recipe_dir;                                    ///< value of `${recipe_dir}`
  std::optional<Recording> recording = std::nullopt;  ///< of `resolved.json` of a run, as it was before overrides
  std::optional<Use> use = std::nullopt;              ///< ComposeOptions::use
};

/// Reads FILE (.yaml, .yml, .json, .jsonnet), what it extends (relative to the file that names it; cycles refused;
/// changing a block's `type` replaces the block), applies the overrides, then interpolation: `${vars.x}`, any other
/// path of the recipe `${model.n_embd}`, `${env:NAME}`, `${env:NAME:-default}`, `${recipe_dir}`; `$${` is a literal
/// `${`. `${recipe_dir}` is the folder of the file that it is written in. A reference that is the whole value keeps its
/// type; unknown names are errors with a suggestion.
std::optional<Composed> compose(const std::string& path, const ComposeOptions& options, core::Diagnostics& diagnostics);

/// The same up to the overrides: `${...}` stays, so that one reading serves many variants. interpolate() and
/// set_value() do the rest.
std::optional<Composed> compose_uninterpolated(const std::string& path, const ComposeOptions& options,
                                               core::Diagnostics& diagnostics);

/// The same for text that is already in memory (tests, the fuzz target).
std::optional<Composed> compose_text(std::shared_ptr<const core::Source> source, const ComposeOptions& options,
                                     core::Diagnostics& diagnostics);

}  // namespace runner::recipe

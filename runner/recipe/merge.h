#pragma once

#include "runner/core/node.h"

namespace runner::recipe {

/// Merges `over` into `base`. Mappings join key by key; lists and scalars are replaced. A block that names another
/// `type` than the one below replaces it completely, since keys of one component mean nothing to another; a bare name
/// counts as the type: `optimizer: sgd` replaces {type: adamw, ...} and leaves {type: sgd, ...} as it is.
void merge(core::Node& base, core::Node over);

/// The same for two recipes. A swept parameter's `values` or `distribution` replace the base's definition of that
/// parameter, except its `when`; null removes the parameter.
void merge_recipes(core::Node& base, core::Node over);

/// Turns the short form `adamw` into {type: adamw}, so that keys can be set in it. Leaves other kinds unchanged.
void expand_short_form(core::Node& node);

}  // namespace runner::recipe

#pragma once

#include "runner/core/node.h"

namespace runner::recipe {

/// Lays `over` upon `base`. Mappings join key by key; lists and scalars are replaced. A block that names another `type`
/// than the one below replaces it whole, since the keys of one component say nothing to another; for that a bare name
/// counts as its type: `optimizer: sgd` replaces {type: adamw, ...} and leaves {type: sgd, ...} as it is.
void merge(core::Node& base, core::Node over);

/// The same of two recipes. What a sweep varies is named anew by `values` or a `distribution`, which take the place of
/// what the base says of that parameter, but for its `when`; null takes the parameter away.
void merge_recipes(core::Node& base, core::Node over);

/// Turns the short form `adamw` into {type: adamw}, so that keys can be set in it. Other kinds are left alone.
void expand_short_form(core::Node& node);

}  // namespace runner::recipe

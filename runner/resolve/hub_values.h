#pragma once

#include <string>
#include <vector>

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "runner/hub/cache.h"
#include "runner/hub/model_files.h"

namespace runner::resolve {

/// A value of a recipe that names something on the Hugging Face Hub, or a file of another server, and what the recipe
/// needs of it.
struct HubValue {
  core::Node* value;  ///< a text that begins with `hf://`, `https://` or `http://`
  hub::Part part;
  bool is_data = false;     ///< of a data set: a file
  bool is_weights = false;  ///< of `init_from` and `teacher`
};

/// Those of `init_from`, `teacher`, `tokenizer`, `model.config` and the data sets, but for data sets that are named by
/// their repository (data_set_values()).
std::vector<HubValue> hub_values(core::Node& recipe);

/// Replaces each, and data sets by locate_data_sets(), by its path in the cache; the history keeps the name with its
/// commit or checksum, which hub_name() returns. Opens no connection: what is not in the cache stays as it is, with a
/// notice. Errors for names that are wrong.
void locate_hub_values(core::Node& recipe, core::Diagnostics& diagnostics);

/// What locate_hub_values() replaced, in the order of hub_values().
std::vector<hub::Located> located_values(core::Node& recipe);

/// The name with its commit or checksum of a value that was replaced; of the part of a split that is not here the split
/// as it was written; "" for any other.
std::string hub_name(const core::Node& value);

}  // namespace runner::resolve

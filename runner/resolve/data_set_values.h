#pragma once

#include <string>
#include <vector>

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "runner/core/result.h"
#include "runner/hub/data_set.h"

namespace runner::resolve {

/// A data set of a recipe that `path` names by its repository, `hf://datasets/OWNER/NAME`.
struct DataSetValue {
  core::Node* block;
  std::string set;  ///< of `data`: `train`, `val`, ...; of a set within another the outer one's
};

/// Those of a recipe, at any depth; those with a wrong name, too.
std::vector<DataSetValue> data_set_values(core::Node& recipe);

/// `train` of `train[:5%]`; "" of `:90%` and `[:5%]`, which are parts of what `path` names.
std::string split_name(const std::string& split);

/// What the recipe asks of it. The Failure is about `path`, and so is what else is wrong with it.
core::Result<hub::DataRequest> request_of(const DataSetValue& value);
/// The value that an error is about.
const core::Node& place_of(const DataSetValue& value, hub::DataError::About about);

/// Replaces `path` by the files in the cache, whose history keeps their names with the commit, `split` by the part of
/// it, and `subset` by nothing, so that a recorded recipe reads the same files without a question. Opens no connection:
/// what is not in the cache stays as it is, with a notice. Errors for what is wrong, and for `subset` or the name of a
/// split where `path` names files.
void locate_data_sets(core::Node& recipe, core::Diagnostics& diagnostics);

/// Of a settled recipe: `path` of a set that locate_data_sets() did not find. Null when there is none.
const core::Node* unlocated_data_set(core::Node& recipe);

}  // namespace runner::resolve

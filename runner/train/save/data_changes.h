#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runner/artifact/provenance/provenance.h"
#include "runner/core/node.h"
#include "runner/train/save/resume_contract.h"

namespace runner::train {

/// Compares the recorded files of the training data with `files` (all that `data.train` reads; nothing: check the
/// recorded ones only). Reads a file again only if its size or time changed.
std::vector<Difference> list_data_changes(const artifact::Provenance& provenance, const core::Node& recipe,
                                          const std::optional<std::vector<std::string>>& files);

/// The record as it would be had the training data lain where it is now: nothing when `files` (all that `data.train`
/// reads, in its order) are not the recorded files by name, size and checksum, or none was recorded. Reads every file.
std::optional<artifact::Provenance> with_training_data_at(const artifact::Provenance& provenance,
                                                          const std::vector<std::string>& files);

/// Whether the training data may be the recorded one at another path: each recorded file has its checksum.
bool may_have_moved(const artifact::Provenance& provenance);

/// Whether the difference says where the training data lies, and not what it is.
bool is_path_of_training_data(const Difference& difference);

}  // namespace runner::train

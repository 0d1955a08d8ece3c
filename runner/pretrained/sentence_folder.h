#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runner/core/node.h"
#include "runner/core/result.h"

namespace runner::pretrained {

/// What a folder of Sentence Transformers says of the vectors of texts beside its model.
struct SentenceFolder {
  std::string pooling;  ///< `mean`, `cls` or `last`, as `model.pooling` has them
  bool normalize = false;
  std::optional<std::int64_t> max_seq_length;  ///< tokens
};

/// Whether a folder has the list of modules of Sentence Transformers.
bool is_sentence_folder(const std::string& folder);

/// Failure (exit status 2) names file and field: damaged, or what roux does not compute, such as a layer behind the
/// pooling.
core::Result<SentenceFolder> read_sentence_folder(const std::string& folder);

/// The files of such a folder, by name, for a model whose vectors have `width` features.
std::vector<std::pair<std::string, std::string>> sentence_files(const SentenceFolder& folder, std::int64_t width);

}  // namespace runner::pretrained

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace runner::hub {

/// What of a repository is needed.
enum class Part {
  kTokenizer,  ///< the files of a tokenizer
  kSettings,   ///< those, and configurations
  kAll,        ///< those, and weights: safetensors if there are any, else PyTorch's; never both
};

/// The files of `part`, by their names at the top of a repository, that it has; without the shards of an index.
std::vector<std::string> files_of(Part part, const std::vector<std::string>& repository);
/// A tokenizer's files beside one of them.
std::vector<std::string> beside_tokenizer(const std::string& file, const std::vector<std::string>& repository);
/// Those of `part` that a repository may lack.
std::vector<std::string> optional_files(Part part);
bool is_index(std::string_view file);
/// The shards that an index names, beside it; nothing when it is not an index, or names a file outside of its folder.
std::optional<std::vector<std::string>> shards_of(const std::string& index_file, const std::string& content);

}  // namespace runner::hub

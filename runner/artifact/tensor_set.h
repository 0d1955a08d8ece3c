#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runner/artifact/checkpoint_dir.h"
#include "runner/core/result.h"

namespace runner::artifact {

inline constexpr const char* kModelFile = "model.safetensors";
inline constexpr const char* kSafetensorsEnding = ".safetensors";
inline constexpr const char* kIndexEnding = ".index.json";  ///< `model.safetensors.index.json`, as transformers writes
inline constexpr const char* kTorchModelFile = "pytorch_model.bin";  ///< transformers' older name; an index as above

using OpenTensors = std::function<core::Result<std::unique_ptr<SafetensorsReader>>(const std::string& path)>;

/// One file of tensors: of torch.save if it ends so (is_torch_path()), otherwise safetensors.
core::Result<std::unique_ptr<SafetensorsReader>> open_tensor_file(const std::string& path);

/// The tensors of a file, of all the shards that an index names, or of the pieces that a manifest lists: `path` decides
/// by its ending. Of a shard, only what the index lists counts. Views live as long as the object. `open` opens one
/// file. Failure: no such file, an index that is none, a shard that is missing or lacks a tensor the index says it has.
core::Result<std::unique_ptr<SafetensorsReader>> open_tensors(const std::string& path,
                                                              const OpenTensors& open = &open_tensor_file);

/// The sets of tensors in a folder, by name: a file's name, and for shards the name without `.index.json`, so that
/// `model.safetensors` is the model in either case. Sorted.
std::vector<std::string> tensor_sets(const std::string& folder);

/// The path to give to open_tensors() for the set `name` of `folder`: the file, its index, or the manifest that lists
/// its pieces; "" when it has none of them.
std::string tensor_set_path(const std::string& folder, const std::string& name);

/// The set that `path` refers to: a file or an index itself; for a folder its model or, if named otherwise by another
/// program, its only set; without safetensors its `pytorch_model.bin`. The Failure (exit status 2) lists the content of
/// the folder.
core::Result<std::string> find_tensor_set(const std::string& path);

/// Checks the files of the set at `path` against the manifest next to them, if there is one.
core::Result<void> verify_tensor_set(const std::string& path);

/// The files that hold the set at `path`, its index included, but not the manifest of pieces.
core::Result<std::vector<std::string>> files_of_set(const std::string& path);

/// The shards that an index names, sorted. Failure as above; their content is not read.
core::Result<std::vector<std::string>> shards_of(const std::string& index_path);

}  // namespace runner::artifact

#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runner/artifact/checkpoint_dir.h"
#include "runner/artifact/tensor_set.h"

namespace runner::artifact {

/// `shard-0.safetensors`: what process 0 wrote.
std::string shard_file(int process);
/// What a tensor of a set is called in such a file: `optimizer/exp_avg.h.0.weight` of `optimizer.safetensors`.
std::string name_in_shard(const std::string& set, const std::string& tensor);

/// Whether a file is of that name and its tensors are called so: it holds rows of several sets, and no model.
bool is_shard(const std::string& path);

/// The path to give to open_tensors() for a set whose tensors lie in pieces: `FOLDER/manifest.json#SET`.
std::string pieces_path(const std::string& folder, const std::string& set);
bool is_pieces_path(std::string_view path);
/// Their files, without the manifest. Failure as open_tensors().
core::Result<std::vector<std::string>> files_of_pieces(const std::string& path);

/// The tensors of a set, each made of the pieces that the manifest lists. Failure: a file of them is missing
/// or lacks a piece, or the pieces do not make up their tensor.
core::Result<std::unique_ptr<SafetensorsReader>> open_pieces(const std::string& path, const OpenTensors& open);

}  // namespace runner::artifact

#include "runner/artifact/tensor_set.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "runner/artifact/file_check.h"
#include "runner/artifact/foreign/torch_file.h"
#include "runner/artifact/io/io.h"
#include "runner/artifact/manifest.h"
#include "runner/artifact/pieced_tensors.h"
#include "runner/artifact/safetensors_header.h"
#include "runner/artifact/torch_reader.h"
#include "runner/core/error.h"
#include "runner/core/json_entries.h"
#include "runner/core/platform/files.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"

namespace runner::artifact {
namespace {

namespace fs = std::filesystem;

using core::Node;
using core::RunError;

constexpr const char* kWeightMap = "weight_map";
constexpr std::int64_t kIndexBytesMax = 32 << 20;
constexpr std::size_t kIndexTensorsMax = 200'000;
constexpr core::JsonLimits kIndexLimits{8, 10'000};

/// Tensor -> shard. RunError when it is not an index, or points out of its folder.
std::map<std::string, std::string> read_index(const std::string& path) {
  const std::string text = core::read_file(path, kIndexBytesMax).value();
  const auto refuse = [&path](const std::string& why) {
    throw RunError(path + " is not an index of shards: " + core::escape_for_terminal(why));
  };
  std::map<std::string, std::string> shards;
  const auto take = [&](const std::string& tensor, const Node& value) {
    const std::string shard = value.is_string() ? value.as_string() : "";
    if (!is_plain_name(shard) || !(shard.ends_with(kSafetensorsEnding) || is_torch_path(shard))) {
      refuse("tensor \"" + tensor + "\" is listed in " + core::to_json(value, -1) +
             ", which is not a file of tensors next to it");
    }
    if (shards.size() == kIndexTensorsMax)
      refuse("it lists more than " + std::to_string(kIndexTensorsMax) + " tensors");
    shards.emplace(tensor, shard);
  };
  const core::Result<Node> root = core::parse_json_entries(text, kWeightMap, kIndexLimits, take);
  if (!root) refuse(root.failure().message);
  const Node* map = root.value().find(kWeightMap);
  if (map == nullptr || !map->is_mapping()) refuse("it has no weight_map");
  return shards;
}

class Shards final : public TensorList {
 public:
  Shards(const std::string& index, const OpenTensors& open) {
    const fs::path folder = fs::path(index).parent_path();
    std::map<std::string, const SafetensorsReader*> opened;
    for (const auto& [tensor, shard] : read_index(index)) {
      const SafetensorsReader*& reader = opened[shard];
      if (reader == nullptr) {
        readers_.push_back(open((folder / shard).string()).value());
        reader = readers_.back().get();
      }
      const TensorBytes* bytes = reader->find(tensor);
      if (bytes == nullptr) {
        throw RunError(core::escape_for_terminal((folder / shard).string() + " lacks tensor \"" + tensor + "\"") +
                       ", which " + index + " lists");
      }
      add(*bytes);
    }
    std::set<std::pair<std::string, std::string>> seen;
    for (const auto& reader : readers_) {
      for (const auto& entry : reader->metadata()) {
        if (seen.insert(entry).second) metadata_.push_back(entry);
      }
    }
  }

  void let_go(const void* data, std::int64_t bytes) const override {
    for (const auto& reader : readers_) reader->let_go(data, bytes);
  }
  std::optional<FilePlace> place_of(const void* data) const override { return place_in(readers_, data); }

 private:
  std::vector<std::unique_ptr<SafetensorsReader>> readers_;
};

}  // namespace

core::Result<std::unique_ptr<SafetensorsReader>> open_tensor_file(const std::string& path) {
  return is_torch_path(path) ? open_torch_file(path) : SafetensorsReader::open(path);
}

core::Result<std::unique_ptr<SafetensorsReader>> open_tensors(const std::string& path, const OpenTensors& open) {
  if (is_pieces_path(path)) return open_pieces(path, open);
  if (!path.ends_with(kIndexEnding)) return open(path);
  return attempt([&]() -> std::unique_ptr<SafetensorsReader> { return std::make_unique<Shards>(path, open); });
}

core::Result<std::vector<std::string>> shards_of(const std::string& index_path) {
  return attempt([&] {
    std::set<std::string> names;
    for (const auto& [tensor, shard] : read_index(index_path)) names.insert(shard);
    return std::vector<std::string>(names.begin(), names.end());
  });
}

std::vector<std::string> tensor_sets(const std::string& folder) {
  std::set<std::string> files, shards, sets;
  const std::vector<std::string> names_there = core::list_folder(folder).value();
  for (const std::string& name : names_there) {
    if (name.ends_with(kSafetensorsEnding)) files.insert(name);
    if (!name.ends_with(std::string(kSafetensorsEnding) + kIndexEnding)) continue;
    sets.insert(name.substr(0, name.size() - std::string_view(kIndexEnding).size()));
    for (std::string& shard : shards_of((fs::path(folder) / name).string()).value_or({}))
      shards.insert(std::move(shard));
  }
  if (const auto manifest = read_manifest(folder)) {
    for (const PieceSet& set : manifest.value().pieces) {
      sets.insert(set.set);
      for (const TensorPieces& tensor : set.tensors) {
        for (const TensorPieces::Piece& piece : tensor.pieces) shards.insert(piece.file);
      }
    }
  }
  for (const std::string& file : files) {
    if (!shards.contains(file)) sets.insert(file);
  }
  return {sets.begin(), sets.end()};
}

std::string tensor_set_path(const std::string& folder, const std::string& name) {
  std::error_code error;
  const std::string file = (fs::path(folder) / name).string();
  if (fs::exists(file, error)) return file;
  if (fs::exists(file + kIndexEnding, error)) return file + kIndexEnding;
  const auto manifest = read_manifest(folder);
  const auto has_set = [&name](const PieceSet& set) { return set.set == name; };
  const bool in_pieces =
      manifest && std::any_of(manifest.value().pieces.begin(), manifest.value().pieces.end(), has_set);
  return in_pieces ? pieces_path(folder, name) : "";
}

namespace {

bool has_manifest(const std::string& folder) {
  std::error_code error;
  return fs::exists(fs::path(folder) / kManifestFile, error);
}

core::Failure without_manifest(const std::string& what) {
  return {what + " no " + kManifestFile + ", which says how the parts make up a model",
          "copy the whole folder of the checkpoint, or make one file of it where it is whole: `roux merge-weights "
          "CHECKPOINT FILE.safetensors`",
          core::kExitUsage};
}

/// What one of several processes wrote of a checkpoint.
core::Failure refusal_of_shard(const std::string& path) {
  std::string folder = fs::path(path).parent_path().string();
  if (folder.empty()) folder = ".";
  const std::string what = path + " is one part of a checkpoint in parts";
  if (!has_manifest(folder)) return without_manifest(what + ", and its folder has");
  return {what + ", with rows of weights and of the optimizer's state", "name the checkpoint's folder: " + folder,
          core::kExitUsage};
}

}  // namespace

core::Result<std::string> find_tensor_set(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    if (is_shard(path)) return refusal_of_shard(path);
    return path;
  }
  const std::string model = tensor_set_path(path, kModelFile);
  if (!model.empty()) return model;
  const std::vector<std::string> sets = tensor_sets(path);
  const bool has_parts = std::any_of(
      sets.begin(), sets.end(), [&path](const std::string& set) { return is_shard((fs::path(path) / set).string()); });
  if (has_parts) {
    // A manifest that lists them has not been left out of the sets.
    if (!has_manifest(path)) return without_manifest(path + " has parts of a checkpoint, but");
    if (const auto manifest = read_manifest(path); !manifest) return manifest.failure();
  }
  if (sets.size() == 1) return tensor_set_path(path, sets.front());
  if (sets.empty()) {
    const std::string torch_model = tensor_set_path(path, kTorchModelFile);
    if (!torch_model.empty()) return torch_model;
    return core::Failure{path + " has no safetensors file", "", core::kExitUsage};
  }
  return core::Failure{path + " has no " + kModelFile + ", but " + core::joined(sets), "name one of them",
                       core::kExitUsage};
}

core::Result<std::vector<std::string>> files_of_set(const std::string& path) {
  if (is_pieces_path(path)) return files_of_pieces(path);
  std::vector<std::string> files = {path};
  if (!path.ends_with(kIndexEnding)) return files;
  const auto shards = shards_of(path);
  if (!shards) return shards.failure();
  for (const std::string& shard : shards.value()) files.push_back((fs::path(path).parent_path() / shard).string());
  return files;
}

core::Result<void> verify_tensor_set(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  std::error_code error;
  if (!fs::exists(fs::path(folder) / kManifestFile, error)) return {};
  const auto manifest = read_manifest(folder);
  if (!manifest) return manifest.failure();
  const auto files = files_of_set(path);
  if (!files) return files.failure();
  for (const std::string& file : files.value()) {
    const std::string name = fs::path(file).filename().string();
    const auto entry = std::find_if(manifest.value().files.begin(), manifest.value().files.end(),
                                    [&](const FileEntry& one) { return one.name == name; });
    if (entry == manifest.value().files.end()) {
      return core::Failure{file + " is not in the manifest of its checkpoint", ""};
    }
    if (const auto same = verify_file(file, *entry); !same) return same;
  }
  return {};
}

}  // namespace runner::artifact

#include "runner/artifact/pieced_tensors.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "runner/artifact/manifest.h"
#include "runner/artifact/safetensors_header.h"
#include "runner/artifact/safetensors_layout.h"
#include "runner/core/error.h"
#include "runner/core/text/utf8.h"

namespace runner::artifact {
namespace {

namespace fs = std::filesystem;

using core::RunError;

constexpr char kMark = '#';
constexpr const char* kShardBegin = "shard-";

struct Parts {
  std::string folder, set;
};

Parts parts_of(const std::string& path) {
  const std::size_t mark = path.rfind(kMark);
  return {fs::path(path.substr(0, mark)).parent_path().string(), path.substr(mark + 1)};
}

/// RunError without such a set.
PieceSet listed(const std::string& path) {
  const auto [folder, set] = parts_of(path);
  Manifest manifest = read_manifest(folder).value();
  const auto found = std::find_if(manifest.pieces.begin(), manifest.pieces.end(),
                                  [&set = set](const PieceSet& one) { return one.set == set; });
  if (found == manifest.pieces.end()) throw RunError(folder + " has no tensors of " + set);
  return std::move(*found);
}

class Pieced final : public TensorList {
 public:
  Pieced(const std::string& path, const OpenTensors& open) {
    const std::string folder = parts_of(path).folder;
    const PieceSet set = listed(path);
    std::map<std::string, const SafetensorsReader*> opened;
    for (const TensorPieces& tensor : set.tensors) {
      std::vector<std::pair<TensorPieces::Piece, const TensorBytes*>> found;
      for (const TensorPieces::Piece& piece : tensor.pieces) {
        const SafetensorsReader*& reader = opened[piece.file];
        const std::string file = (fs::path(folder) / piece.file).string();
        if (reader == nullptr) {
          readers_.push_back(open(file).value());
          reader = readers_.back().get();
        }
        const TensorBytes* bytes = reader->find(name_in_shard(set.set, tensor.name));
        if (bytes == nullptr) {
          throw RunError(core::escape_for_terminal(file + " lacks its rows of tensor \"" + tensor.name + "\"") +
                         ", which the manifest lists");
        }
        found.emplace_back(piece, bytes);
      }
      add(joined(tensor, std::move(found), folder));
    }
  }

  void let_go(const void* data, std::int64_t bytes) const override {
    for (const auto& reader : readers_) reader->let_go(data, bytes);
  }
  std::optional<FilePlace> place_of(const void* data) const override { return place_in(readers_, data); }

 private:
  static TensorBytes joined(const TensorPieces& tensor,
                            std::vector<std::pair<TensorPieces::Piece, const TensorBytes*>> found,
                            const std::string& folder) {
    const auto refuse = [&](const std::string& why) {
      throw RunError(core::escape_for_terminal(folder + ": tensor \"" + tensor.name + "\": ") + why);
    };
    std::sort(found.begin(), found.end(),
              [](const auto& one, const auto& other) { return one.first.first_row < other.first.first_row; });
    if (found.empty()) refuse("the manifest lists no piece of it");
    TensorBytes whole{tensor.name, found.front().second->dtype, tensor.shape, nullptr, 0, {}};
    std::int64_t rows = 0;
    for (const auto& [piece, bytes] : found) {
      std::vector<std::int64_t> shape = tensor.shape;
      if (!shape.empty() && !bytes->shape.empty()) shape.front() = bytes->shape.front();
      if (bytes->shape != shape || bytes->dtype != whole.dtype || piece.first_row != rows) {
        refuse("its rows in " + piece.file + " do not continue those before them");
      }
      rows += shape.empty() ? 1 : shape.front();
      whole.bytes += bytes->bytes;
      if (bytes->bytes > 0) whole.pieces.push_back({static_cast<const char*>(bytes->data), bytes->bytes});
    }
    if (rows != (tensor.shape.empty() ? 1 : tensor.shape.front())) refuse("rows of it are missing");
    if (whole.pieces.size() == 1) {
      whole.data = whole.pieces.front().data;
      whole.pieces.clear();
    }
    return whole;
  }

  std::vector<std::unique_ptr<SafetensorsReader>> readers_;
};

}  // namespace

std::string shard_file(int process) { return kShardBegin + std::to_string(process) + kSafetensorsEnding; }

bool is_shard(const std::string& path) {
  const std::string name = fs::path(path).filename().string();
  const std::size_t begin = std::string_view(kShardBegin).size();
  const std::size_t end = name.find_first_not_of("0123456789", begin);
  if (!name.starts_with(kShardBegin) || end == begin || end == std::string::npos) return false;
  if (name.substr(end) != kSafetensorsEnding) return false;
  const auto reader = SafetensorsReader::open(path);
  if (!reader) return false;
  const auto& tensors = reader.value()->tensors();
  return std::all_of(tensors.begin(), tensors.end(),
                     [](const TensorBytes& one) { return one.name.find('/') != std::string::npos; });
}

std::string name_in_shard(const std::string& set, const std::string& tensor) {
  return set.substr(0, set.size() - std::string_view(kSafetensorsEnding).size()) + "/" + tensor;
}

std::string pieces_path(const std::string& folder, const std::string& set) {
  return (fs::path(folder) / kManifestFile).string() + kMark + set;
}

bool is_pieces_path(std::string_view path) {
  const std::size_t mark = path.rfind(kMark);
  return mark != std::string_view::npos && path.ends_with(kSafetensorsEnding) &&
         fs::path(path.substr(0, mark)).filename() == kManifestFile;
}

core::Result<std::vector<std::string>> files_of_pieces(const std::string& path) {
  return core::attempt([&] {
    std::set<std::string> files;
    for (const TensorPieces& tensor : listed(path).tensors) {
      for (const TensorPieces::Piece& piece : tensor.pieces) {
        files.insert((fs::path(parts_of(path).folder) / piece.file).string());
      }
    }
    return std::vector<std::string>(files.begin(), files.end());
  });
}

core::Result<std::unique_ptr<SafetensorsReader>> open_pieces(const std::string& path, const OpenTensors& open) {
  return core::attempt([&]() -> std::unique_ptr<SafetensorsReader> { return std::make_unique<Pieced>(path, open); });
}

}  // namespace runner::artifact

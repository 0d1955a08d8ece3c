#include "runner/train/reference/reference_file.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "components/tensor/preferences.h"
#include "runner/artifact/checkpoint_dir.h"
#include "runner/artifact/io/checksum.h"
#include "runner/artifact/io/io.h"
#include "runner/artifact/safetensors_writer.h"
#include "runner/core/error.h"

namespace runner::train {
namespace {

// Checksums in the file's metadata.
constexpr const char* kOfPairs = "pairs";
constexpr const char* kOfModel = "model";  ///< of the reference's weights
constexpr const char* kOfFigures = "figures";

std::string checksum_of_figures(const ReferenceFigures& figures) {
  artifact::Checksum checksum;
  for (const auto* list : {&figures.chosen, &figures.rejected}) {
    checksum.update(list->data(), static_cast<std::int64_t>(list->size() * sizeof(float)));
  }
  return checksum.text();
}

std::string recorded(const artifact::SafetensorsReader& file, const std::string& key) {
  const auto& all = file.metadata();
  const auto found = std::find_if(all.begin(), all.end(), [&key](const auto& entry) { return entry.first == key; });
  return found != all.end() ? found->second : "";
}

/// Empty when the file has no such list.
std::vector<float> floats_of(const artifact::SafetensorsReader& file, const char* name) {
  const artifact::TensorBytes* tensor = file.find(name);
  if (tensor == nullptr || tensor->dtype != "F32" || tensor->shape.size() != 1) return {};
  std::vector<float> values(static_cast<std::size_t>(tensor->shape[0]));
  std::memcpy(values.data(), tensor->data, values.size() * sizeof(float));
  return values;
}

artifact::TensorBytes bytes_of(const char* name, const std::vector<float>& values) {
  const auto size = static_cast<std::int64_t>(values.size());
  return {name, "F32", {size}, values.data(), size * static_cast<std::int64_t>(sizeof(float))};
}

}  // namespace

ReferenceFigures read_reference(const std::string& path, const ReferenceOrigin& origin, std::int64_t size) {
  const char* const hint = "restore the file, or start a new run with --new";
  const auto file = artifact::SafetensorsReader::open(path);
  if (!file) throw core::RunError(file.failure().message, hint);
  const artifact::SafetensorsReader& reader = *file.value();
  ReferenceFigures figures{floats_of(reader, components::kReferenceChosen),
                           floats_of(reader, components::kReferenceRejected)};
  if (recorded(reader, kOfFigures) != checksum_of_figures(figures)) {
    throw core::RunError("the reference log-probabilities of " + path + " are damaged: their checksum differs", hint);
  }
  const auto pairs = static_cast<std::size_t>(size);
  const bool fits = figures.chosen.size() == pairs && figures.rejected.size() == pairs;
  if (!fits || recorded(reader, kOfPairs) != origin.pairs) {
    throw core::RunError("the reference log-probabilities of " + path +
                             " are of other pairs than the recipe's: data, tokenizer or max_seq_len have changed",
                         "start a new run with --new: it computes them again");
  }
  if (!origin.model.empty() && recorded(reader, kOfModel) != origin.model) {
    throw core::RunError("the reference log-probabilities of " + path + " are of another model", hint);
  }
  return figures;
}

void write_reference(const std::string& path, const ReferenceOrigin& origin, const ReferenceFigures& figures) {
  artifact::Io& io = artifact::system_io();
  const std::string folder = std::filesystem::path(path).parent_path(), draft = path + ".part";
  artifact::make_dirs(io, folder);
  if (std::filesystem::exists(draft)) io.remove_file(draft);
  artifact::write_safetensors(
      io, draft,
      {bytes_of(components::kReferenceChosen, figures.chosen),
       bytes_of(components::kReferenceRejected, figures.rejected)},
      {{kOfPairs, origin.pairs}, {kOfModel, origin.model}, {kOfFigures, checksum_of_figures(figures)}}, {});
  io.rename(draft, path);
  io.sync_dir(folder);
}

}  // namespace runner::train

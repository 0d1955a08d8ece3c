#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "components/tensor/random_state.h"
#include "components/tensor/tensors.h"
#include "runner/artifact/manifest.h"
#include "runner/artifact/tensor_bytes.h"
#include "runner/artifact/tensor_compare.h"
#include "runner/artifact/tensor_set.h"
#include "runner/checkpoint/base_weights.h"
#include "runner/checkpoint/checkpoint.h"
#include "runner/checkpoint/files.h"
#include "runner/checkpoint/state_section.h"
#include "runner/checkpoint/tensor_file.h"
#include "runner/core/error.h"
#include "runner/core/json.h"
#include "runner/core/log.h"
#include "runner/core/platform/files.h"
#include "runner/core/text/text.h"

namespace runner::checkpoint {
namespace {

namespace fs = std::filesystem;

using artifact::TensorBytes;
using components::NamedTensor;
using core::Node;
using core::RunError;

enum class Types { kSame, kConverted };

/// Reports the differences between a file and a model at once.
class Differences {
 public:
  void missing(const std::string& name) { missing_.push_back(name); }
  void unexpected(const std::string& name) { unexpected_.push_back(name); }
  void other(const std::string& name, const std::string& there, const std::string& here) {
    others_.push_back(name + " is " + there + " there and " + here + " in the model");
  }
  void refuse_if_any(const std::string& path) const {
    std::string text;
    if (!missing_.empty()) text += "; it lacks " + core::joined_first(missing_, kShown);
    if (!unexpected_.empty()) text += "; the model has no " + core::joined_first(unexpected_, kShown);
    if (!others_.empty()) text += "; " + core::joined_first(others_, kShown, "; ");
    if (text.empty()) return;
    throw RunError(path + " does not fit the model: " + text.substr(2), "the recipe describes a different model");
  }

 private:
  static constexpr std::size_t kShown = 3;

  std::vector<std::string> missing_, unexpected_, others_;
};

bool convertible(const at::Tensor& target, const TensorBytes& bytes) {
  return target.is_floating_point() && (bytes.dtype[0] == 'F' || bytes.dtype[0] == 'B') && bytes.dtype != "BOOL";
}

/// model.safetensors in `folder`, or the index of its shards.
std::string model_path(const std::string& folder) {
  const std::string path = artifact::tensor_set_path(folder, kModelFile);
  return path.empty() ? (fs::path(folder) / kModelFile).string() : path;
}

/// Compares first, then copies, so a model that does not fit stays unchanged. `base`: what the file need not have.
/// `rows`: what is filled instead of the parameters of these names. Of `access` what says what stays in
/// its file, or is filled in place of a parameter.
void load_model(const TensorSource& file, const components::model::Model& model, Types types, const BaseWeights* base,
                const WeightAccess& access, const std::vector<components::TensorRows>& rows = {}) {
  std::multimap<std::string, std::string> other_names;
  std::unordered_set<std::string> known;
  for (const components::block::Tie& tie : model.ties()) {
    other_names.emplace(tie.owner, tie.name);
    known.insert(tie.name);
  }
  components::NamedTensors targets = model.parameters();
  for (NamedTensor& buffer : model.buffers()) targets.push_back(std::move(buffer));

  std::unordered_map<std::string_view, const components::TensorRows*> rows_of;
  for (const components::TensorRows& one : rows) rows_of.emplace(one.name, &one);
  Differences differences;
  std::vector<const TensorBytes*> found;
  for (const NamedTensor& target : targets) {
    known.insert(target.name);
    const TensorBytes* bytes = file.find(target.name);
    const auto own = rows_of.find(target.name);
    const at::Tensor& filled = own != rows_of.end() ? own->second->rows : target.tensor;
    // Another program may have saved a tied parameter under another of its names.
    const auto [first, last] = other_names.equal_range(target.name);
    for (auto name = first; bytes == nullptr && name != last; ++name) bytes = file.find(name->second);
    found.push_back(bytes);
    if (bytes == nullptr && base != nullptr && base->holds(target.name)) continue;
    if (bytes == nullptr) {
      differences.missing(target.name);
    } else if (target.tensor.sizes() != at::IntArrayRef(bytes->shape)) {
      differences.other(target.name, artifact::shape_text(bytes->shape),
                        artifact::shape_text(target.tensor.sizes().vec()));
    } else if (dtype_word(filled) != bytes->dtype && !(types == Types::kConverted && convertible(filled, *bytes))) {
      differences.other(target.name, bytes->dtype, dtype_word(filled));
    }
  }
  for (const TensorBytes& bytes : file.tensors()) {
    if (!known.contains(bytes.name)) differences.unexpected(bytes.name);
  }
  differences.refuse_if_any(file.path());
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (found[i] == nullptr) continue;
    const auto own = rows_of.find(targets[i].name);
    if (own == rows_of.end()) {
      const std::string& name = targets[i].name;
      if (access.stays && access.stays(name)) {
        access.stay(name, file.parts_of(*found[i], 0, /*transposed=*/false));
        continue;
      }
      const at::Tensor* const other = access.in_place_of ? access.in_place_of(name) : nullptr;
      file.copy_to(*found[i], other != nullptr ? *other : targets[i].tensor);
    } else if (const at::Tensor& part = own->second->rows; part.numel() > 0) {
      const artifact::TensorBytes bytes = artifact::rows_of(*found[i], own->second->place.first, part.size(0));
      file.copy_to(bytes, found[i]->shape.empty() ? part.view({}) : part);
    }
  }
}

const Node& section(const Node& trainer, const char* key, const std::string& path) {
  const Node* node = trainer.find(key);
  if (node == nullptr || !node->is_mapping()) throw RunError(path + " has no section \"" + key + "\"");
  return *node;
}

Node read_trainer(const std::string& path) {
  const std::string text = core::read_file(path, artifact::kTrainerBytesMax).value();
  core::Result<Node> parsed = core::parse_json(text);
  if (!parsed) throw RunError(path + " cannot be read: " + parsed.failure().message);
  const Node* version = parsed.value().find("format_version");
  if (version == nullptr || !version->is_integer()) throw RunError(path + " has no format version");
  artifact::refuse_later_trainer(parsed.value(), path).value();
  return with_plain_numbers(parsed.value());
}

void load_stateful(const std::string& folder, const Node& sections, TrainState& state, CheckpointPrefetch* prefetched) {
  std::unordered_set<std::string> taken;
  for (const auto& [name, stateful] : state.stateful) {
    const Node* values = sections.find(name);
    if (values == nullptr) {
      // A part without a state has no section; one that gained a state since starts from scratch.
      SectionWriter wanted(name);
      stateful->save_state(wanted);
      if (wanted.empty()) continue;
      if (name == kOptimizerSection) throw RunError(folder + " has no state of " + name);
      core::log_warning(folder + " has no state of " + name + ": it starts from scratch");
      continue;
    }
    stateful->load_state(SectionReader(folder, name, *values, prefetched));
    taken.insert(name);
  }
  for (const Node::Entry& entry : sections.entries()) {
    if (!taken.contains(entry.key)) {
      core::log_warning(folder + " has the state of " + entry.key + ", which is no longer in the recipe");
    }
  }
}

void load_generators(const std::string& folder, int rank, const c10::Device& device, CheckpointPrefetch* prefetched) {
  const std::string name = random_section(static_cast<std::size_t>(rank));
  std::error_code ignored;
  if (rank > 0 && !fs::exists(fs::path(folder) / (name + ".safetensors"), ignored)) {
    return core::log_warning(folder + " was saved by fewer processes: the random numbers of process " +
                             std::to_string(rank) + " start from the seed");
  }
  const SectionReader reader(folder, name, Node::mapping(), prefetched);
  components::NamedTensors found;
  for (const std::string& generator : components::RandomState::names_of(device)) {
    if (found.empty() || reader.has(generator)) {
      found.push_back({generator, reader.tensor(generator)});  // every checkpoint has the CPU's, the first one
    } else {
      core::log_info(folder + " was saved on another device: the random numbers of " + generator +
                     " start from the seed");
    }
  }
  components::RandomState::of(found, device).restore();
}

}  // namespace

Node load(const std::string& path, TrainState& state, CheckpointPrefetch* prefetched) {
  const std::string trainer_path = (fs::path(path) / artifact::kTrainerFile).string();
  const Node trainer = read_trainer(trainer_path);
  const Node& sections = section(trainer, "state", trainer_path);
  auto base = BaseWeights::of_trainer(trainer, trainer_path);
  load_model(TensorSource(model_path(path), prefetched), *state.model, Types::kSame, base.get(), state.access,
             state.loaded_rows);
  // Back to an earlier step it is there already, and does not change.
  const bool is_there = state.base != nullptr && base != nullptr && state.base->checksum() == base->checksum();
  if (base != nullptr && !is_there) base->load_into(*state.model, state.base_elsewhere, state.access);
  state.base = std::move(base);
  load_stateful(path, sections, state, prefetched);
  load_generators(path, state.rank, state.device, prefetched);
  return section(trainer, "counters", trainer_path);
}

Node load_counters(const std::string& path) {
  const std::string trainer_path = (fs::path(path) / artifact::kTrainerFile).string();
  return section(read_trainer(trainer_path), "counters", trainer_path);
}

void load_weights(const std::string& path, const components::model::Model& model, const std::string& base_elsewhere,
                  const WeightAccess& access) {
  std::error_code error;
  const bool folder = fs::is_directory(path, error);
  const auto base = BaseWeights::of_checkpoint(folder ? path : fs::path(path).parent_path().string());
  load_model(TensorSource(folder ? model_path(path) : path), model, Types::kConverted, base.get(), access);
  if (base != nullptr) base->load_into(model, base_elsewhere, access);
}

}  // namespace runner::checkpoint

#include "runner/checkpoint/snapshot.h"

#include <ATen/Parallel.h>

#include <algorithm>

#include "components/tensor/cpu_capability.h"
#include "components/tensor/random_state.h"
#include "components/tensor/tensors.h"
#include "runner/artifact/manifest.h"
#include "runner/artifact/shards.h"
#include "runner/checkpoint/base_weights.h"
#include "runner/checkpoint/files.h"
#include "runner/checkpoint/state_section.h"
#include "runner/core/platform/parallel.h"

namespace runner::checkpoint {
namespace {

using components::NamedTensor;
using core::Node;

constexpr std::int64_t kOverheadBytes = 64 << 10;  // trainer.json, the manifest, folders
constexpr std::int64_t kPageBytes = 4096;
constexpr std::size_t kWritersMax = 2;  // one hashes while the other waits for the disk; more do not help

std::int64_t up_to_page(std::int64_t bytes) { return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes; }

/// A tied parameter is in model.safetensors under its owner only; this records the other name.
Node ties_of(const components::model::Model& model) {
  Node ties = Node::mapping();
  for (const components::block::Tie& tie : model.ties()) ties.set(tie.name, Node::string(tie.owner));
  return ties;
}

}  // namespace

Snapshot::Snapshot(const TrainState& state, std::int64_t shard_bytes_max)
    : download_(state.device.is_cpu() ? nullptr : std::make_unique<components::Download>(state.device)),
      threads_(at::get_num_threads()),
      cpu_capability_(components::cpu_capability()) {
  components::NamedTensors tensors = state.model->parameters();
  for (NamedTensor& buffer : state.model->buffers()) tensors.push_back(std::move(buffer));
  if (state.base) std::erase_if(tensors, [&](const NamedTensor& named) { return state.base->holds(named.name); });
  std::vector<std::pair<std::string, std::int64_t>> sizes;
  for (const NamedTensor& named : tensors) {
    sizes.emplace_back(named.name, static_cast<std::int64_t>(named.tensor.nbytes()));
  }
  const artifact::ShardPlan shards = artifact::plan_shards(sizes, shard_bytes_max);
  for (const artifact::ShardPlan::File& shard : shards.files) {
    TensorFile& file = files_.emplace_back(shard.name, download_.get());
    for (const std::size_t i : shard.tensors) file.add(tensors[i].name, tensors[i].tensor);
  }
  if (!shards.index.empty()) texts_.emplace_back(kModelIndexFile, shards.index);

  Node values = Node::mapping();
  for (const auto& [name, stateful] : state.stateful) {
    SectionWriter section(name, download_.get());
    stateful->save_state(section);
    if (section.empty()) continue;
    values.set(name, section.values());
    if (!section.tensors().empty()) files_.push_back(std::move(section).take_tensors());
  }
  std::vector<components::RandomState> generators;
  for (const std::string& bytes : state.random_states) {
    generators.push_back(components::RandomState::of(bytes, state.device));
  }
  if (generators.empty()) generators.push_back(components::RandomState::now(state.device));
  for (std::size_t rank = 0; rank < generators.size(); ++rank) {
    SectionWriter random(random_section(rank));
    for (const NamedTensor& one : generators[rank].tensors()) random.tensor(one.name, one.tensor);
    files_.push_back(std::move(random).take_tensors());
  }
  if (download_ != nullptr) download_->end();

  Node trainer = Node::mapping();
  trainer.set("format_version", Node::integer(artifact::kTrainerVersion));
  trainer.set("counters", state.counters);
  trainer.set("ties", ties_of(*state.model));
  if (state.base) trainer.set("base", state.base->to_node());
  trainer.set("state", std::move(values));
  texts_.emplace_back(artifact::kTrainerFile, core::to_json(with_marked_numbers(trainer)) + "\n");
}

std::int64_t Snapshot::bytes() const {
  std::int64_t bytes = kOverheadBytes;
  for (const TensorFile& file : files_) bytes += up_to_page(file.bytes());
  for (const auto& [file, content] : texts_) bytes += static_cast<std::int64_t>(content.size());
  return bytes;
}

bool Snapshot::copy_to(artifact::AlignedBytes& memory) {
  std::int64_t bytes = 0;
  for (const TensorFile& file : files_) bytes += up_to_page(file.bytes());
  if (!memory.reserve(bytes)) return false;
  std::vector<CopyPiece> pieces;
  char* next = memory.data();
  for (TensorFile& file : files_) {
    file.move_to(next, pieces);
    next += up_to_page(file.bytes());
  }
  copy_all(pieces);
  for (TensorFile& file : files_) file.release();
  return true;
}

std::unique_ptr<artifact::CheckpointWriter> Snapshot::write(const SaveOptions& options) const {
  if (download_ != nullptr) download_->wait();
  auto draft = artifact::CheckpointWriter::begin(options.checkpoints_dir, options.fields.step, bytes(),
                                                 artifact::system_io(), {options.direct_io, options.throttle.get()})
                   .value();
  std::vector<const TensorFile*> largest_first;
  for (const TensorFile& file : files_) largest_first.push_back(&file);
  std::stable_sort(largest_first.begin(), largest_first.end(),
                   [](const TensorFile* a, const TensorFile* b) { return a->bytes() > b->bytes(); });
  core::in_parallel(largest_first.size(), kWritersMax, [&](std::size_t i) { largest_first[i]->write(*draft).value(); });
  for (const auto& [file, content] : texts_) draft->add_text(file, content).value();
  return draft;
}

std::string Snapshot::commit(artifact::CheckpointWriter& draft, const SaveOptions& options) const {
  artifact::ManifestFields fields = options.fields;
  fields.threads = threads_;
  fields.cpu_capability = cpu_capability_;
  return draft.commit(std::move(fields), options.metrics_committed, options.now_ms).value();
}

}  // namespace runner::checkpoint

#include "runner/checkpoint/snapshot.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <unordered_map>

#include "components/tensor/cpu_capability.h"
#include "components/tensor/random_state.h"
#include "components/tensor/tensors.h"
#include "runner/artifact/joint_save.h"
#include "runner/artifact/manifest.h"
#include "runner/artifact/pieced_tensors.h"
#include "runner/artifact/shards.h"
#include "runner/artifact/tensor_set.h"
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

/// All tensors of the model but those that lie elsewhere.
components::NamedTensors saved_tensors(const TrainState& state) {
  components::NamedTensors tensors = state.model->parameters();
  for (NamedTensor& buffer : state.model->buffers()) tensors.push_back(std::move(buffer));
  if (state.base) std::erase_if(tensors, [&](const NamedTensor& named) { return state.base->holds(named.name); });
  return tensors;
}

/// What one of several processes has of a part's state.
class ShareOfSection final : public core::StateWriter {
 public:
  Node own_values = Node::mapping();
  components::NamedTensors own_tensors;
  std::vector<components::TensorRows> own_rows;

  void value(std::string_view name, Node value) override { own_values.set(name, std::move(value)); }
  void tensor(std::string_view name, const at::Tensor& tensor) override {
    own_tensors.push_back({std::string(name), tensor});
  }
  void rows(std::string_view name, const at::Tensor& rows, const core::RowsPlace& place) override {
    own_rows.push_back({std::string(name), rows, place});
  }
  bool empty() const { return own_values.entries().empty() && own_tensors.empty() && own_rows.empty(); }
};

}  // namespace

Snapshot::Snapshot(const TrainState& state, std::int64_t shard_bytes_max)
    : download_(state.device.is_cpu() ? nullptr : std::make_unique<components::Download>(state.device)),
      threads_(at::get_num_threads()),
      cpu_capability_(components::cpu_capability()) {
  Node values = Node::mapping();
  if (state.share) {
    shard_.emplace(artifact::shard_file(state.share->process), download_.get());
    add_share_of_model(state);
    for (const auto& [name, part] : state.stateful) {
      Node of_part = add_share_of_section(name, *part, *state.share);
      if (!of_part.is_null()) values.set(name, std::move(of_part));
    }
    if (!shard_->empty()) files_.push_back(std::move(*shard_));
    shard_.reset();
  } else {
    add_model(state, shard_bytes_max);
    for (const auto& [name, part] : state.stateful) {
      Node of_part = add_section(name, *part);
      if (!of_part.is_null()) values.set(name, std::move(of_part));
    }
  }
  add_generators(state);
  if (download_ != nullptr) download_->end();
  if (state.share && state.share->process > 0) return;

  Node trainer = Node::mapping();
  trainer.set("format_version", Node::integer(artifact::kTrainerVersion));
  trainer.set("counters", state.counters);
  trainer.set("ties", ties_of(*state.model));
  if (state.base) trainer.set("base", state.base->to_node());
  trainer.set("state", std::move(values));
  texts_.emplace_back(artifact::kTrainerFile, core::to_json(with_marked_numbers(trainer)) + "\n");
}

void Snapshot::add_model(const TrainState& state, std::int64_t shard_bytes_max) {
  const components::NamedTensors tensors = saved_tensors(state);
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
}

Node Snapshot::add_section(const std::string& name, const core::Stateful& part) {
  SectionWriter section(name, download_.get());
  part.save_state(section);
  if (section.empty()) return Node::null();
  Node values = section.values();
  if (!section.tensors().empty()) files_.push_back(std::move(section).take_tensors());
  return values;
}

void Snapshot::add_share_of_model(const TrainState& state) {
  std::unordered_map<std::string_view, const components::TensorRows*> rows;
  for (const components::TensorRows& one : state.share->rows) rows.emplace(one.name, &one);
  for (const NamedTensor& named : saved_tensors(state)) {
    const auto own = rows.find(named.name);
    if (own != rows.end()) {
      add_piece(kModelFile, named.name, own->second->rows, own->second->place);
    } else if (state.share->process == 0) {
      add_piece(kModelFile, named.name, named.tensor, {named.tensor.sizes().vec(), 0});
    }
  }
}

/// Of other processes than the first the rows alone: the rest is the same.
Node Snapshot::add_share_of_section(const std::string& name, const core::Stateful& part, const SaveShare& share) {
  ShareOfSection share_of_part;
  part.save_state(share_of_part);
  const std::string set = name + artifact::kSafetensorsEnding;
  for (const components::TensorRows& one : share_of_part.own_rows) add_piece(set, one.name, one.rows, one.place);
  if (share.process > 0 || share_of_part.empty()) return Node::null();
  if (!share_of_part.own_rows.empty()) {
    for (const NamedTensor& one : share_of_part.own_tensors)
      add_piece(set, one.name, one.tensor, {one.tensor.sizes().vec(), 0});
  } else if (!share_of_part.own_tensors.empty()) {
    TensorFile& file = files_.emplace_back(set, download_.get());
    for (const NamedTensor& one : share_of_part.own_tensors) file.add(one.name, one.tensor);
  }
  return share_of_part.own_values;
}

void Snapshot::add_piece(const std::string& set, const std::string& name, const at::Tensor& rows,
                         const core::RowsPlace& place) {
  if (rows.numel() == 0 && place.first > 0) return;  // the first process has the most rows
  shard_->add(artifact::name_in_shard(set, name), rows);
  auto of_set =
      std::find_if(pieces_.begin(), pieces_.end(), [&set](const artifact::PieceSet& one) { return one.set == set; });
  if (of_set == pieces_.end()) of_set = pieces_.insert(pieces_.end(), {set, {}});
  of_set->tensors.push_back({name, place.whole, {{shard_->file_name(), place.first}}});
}

void Snapshot::add_generators(const TrainState& state) {
  std::vector<components::RandomState> generators;
  for (const std::string& bytes : state.random_states) {
    generators.push_back(components::RandomState::of(bytes, state.device));
  }
  if (generators.empty()) generators.push_back(components::RandomState::now(state.device));
  const std::size_t first = state.share ? static_cast<std::size_t>(state.share->process) : 0;
  for (std::size_t i = 0; i < generators.size(); ++i) {
    SectionWriter random(random_section(first + i));
    for (const NamedTensor& one : generators[i].tensors()) random.tensor(one.name, one.tensor);
    files_.push_back(std::move(random).take_tensors());
  }
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

std::unique_ptr<artifact::CheckpointWriter> Snapshot::begin(const SaveOptions& options) const {
  const std::int64_t processes = options.joint != nullptr ? options.joint->processes : 1;  // their parts are alike
  return artifact::CheckpointWriter::begin(options.checkpoints_dir, options.fields.step, processes * bytes(),
                                           artifact::system_io(),
                                           {options.direct_io, options.throttle.get(), options.joint})
      .value();
}

void Snapshot::write(artifact::CheckpointWriter& draft) const {
  if (download_ != nullptr) download_->wait();
  std::vector<const TensorFile*> largest_first;
  for (const TensorFile& file : files_) largest_first.push_back(&file);
  std::stable_sort(largest_first.begin(), largest_first.end(),
                   [](const TensorFile* a, const TensorFile* b) { return a->bytes() > b->bytes(); });
  core::in_parallel(largest_first.size(), kWritersMax, [&](std::size_t i) { largest_first[i]->write(draft).value(); });
  for (const auto& [file, content] : texts_) draft.add_text(file, content).value();
  draft.add_pieces(pieces_);
}

std::string Snapshot::commit(artifact::CheckpointWriter& draft, const SaveOptions& options) const {
  artifact::ManifestFields fields = options.fields;
  fields.threads = threads_;
  fields.cpu_capability = cpu_capability_;
  return draft.commit(std::move(fields), options.metrics_committed, options.now_ms).value();
}

}  // namespace runner::checkpoint

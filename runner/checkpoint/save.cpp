#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <ATen/core/Generator.h>

#include <deque>
#include <mutex>
#include <utility>

#include "components/tensors.h"
#include "runner/checkpoint/checkpoint.h"
#include "runner/checkpoint/files.h"
#include "runner/checkpoint/state_section.h"
#include "runner/checkpoint/tensor_file.h"

namespace runner::checkpoint {
namespace {

using components::NamedTensor;
using core::Node;

constexpr std::int64_t kOverheadBytes = 64 << 10;      // trainer.json, the manifest, folders
constexpr std::int64_t kOverheadBytesPerTensor = 256;  // its line in the header
constexpr std::int64_t kGeneratorBytes = 5056;         // mt19937's state as LibTorch hands it out

TensorFile model_file(const components::model::Model& model) {
  TensorFile file(kModelFile);
  for (const NamedTensor& named : model.parameters()) file.add(named.name, named.tensor);
  for (const NamedTensor& named : model.buffers()) file.add(named.name, named.tensor);
  return file;
}

at::Tensor generator_state() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  return generator.get_state();
}

/// A tied parameter is in model.safetensors under its owner only; here is the other name.
Node ties_of(const components::model::Model& model) {
  Node ties = Node::mapping();
  for (const components::model::Tie& tie : model.ties()) ties.set(tie.name, Node::string(tie.owner));
  return ties;
}

}  // namespace

std::string save(const TrainState& state, const SaveOptions& options) {
  const TensorFile model = model_file(*state.model);
  std::deque<SectionWriter> sections;
  Node values = Node::mapping();
  for (const auto& [name, stateful] : state.stateful) {
    stateful->save_state(sections.emplace_back(name));
    values.set(name, sections.back().values());
  }
  SectionWriter random(kRandomSection);
  random.tensor(kCpuGenerator, generator_state());

  Node trainer = Node::mapping();
  trainer.set("format_version", Node::integer(kTrainerVersion));
  trainer.set("counters", state.counters);
  trainer.set("ties", ties_of(*state.model));
  trainer.set("state", std::move(values));

  std::int64_t bytes = kOverheadBytes + model.bytes() + random.tensors().bytes();
  for (const SectionWriter& section : sections) bytes += section.tensors().bytes();

  const auto draft = artifact::CheckpointDraft::begin(options.checkpoints_dir, options.fields.step, bytes).value();
  model.write(*draft).value();
  for (const SectionWriter& section : sections) {
    if (!section.tensors().empty()) section.tensors().write(*draft).value();
  }
  random.tensors().write(*draft).value();
  draft->add_text(kTrainerFile, core::to_json(with_marked_numbers(trainer)) + "\n").value();

  artifact::ManifestFields fields = options.fields;
  fields.threads = at::get_num_threads();
  fields.cpu_capability = at::get_cpu_capability();
  return draft->commit(std::move(fields), options.metrics_committed, options.now_ms).value();
}

std::int64_t estimate_bytes(const components::model::Model& model, int optimizer_tensors_per_parameter) {
  std::int64_t bytes = kOverheadBytes + kGeneratorBytes;
  for (const NamedTensor& named : model.parameters()) {
    const auto tensor_bytes = static_cast<std::int64_t>(named.tensor.nbytes()) + kOverheadBytesPerTensor;
    bytes += (1 + optimizer_tensors_per_parameter) * tensor_bytes;
  }
  for (const NamedTensor& named : model.buffers()) {
    bytes += static_cast<std::int64_t>(named.tensor.nbytes()) + kOverheadBytesPerTensor;
  }
  return bytes;
}

}  // namespace runner::checkpoint

#include "runner/engine/memory/shaped_data.h"

#include <string>
#include <utility>

#include "components/tensor/positions.h"
#include "components/tensor/several_texts.h"
#include "components/tensor/tensor_spec.h"
#include "runner/core/error.h"
#include "runner/train/data/label_kind.h"

namespace runner::engine {
namespace {

using components::BatchSpec;
using components::Dtype;
using components::kBatch;
using components::kTime;
using components::TensorSpec;
using components::data::LabelKind;

constexpr std::int64_t kTextsEach = 2;  ///< of a record with several

TensorSpec ids(const char* name, std::int64_t vocab_size, std::int64_t length) {
  TensorSpec port{name, Dtype::kInt64, {kBatch, kTime}, false};
  port.vocab_size = vocab_size;
  port.max_length = length;
  return port;
}

std::int64_t vocabulary_of(const core::Node& model) {
  const core::Node* size = model.at_path("config.vocab_size");
  return size != nullptr && size->is_integer() ? size->as_integer() : 0;
}

/// The values that the head of a recipe's model tells of a text, or of a position.
std::int64_t outputs_of(const resolve::Recipe& recipe) {
  const core::Node* written = recipe.model.find("num_labels");
  if (written != nullptr && written->is_integer()) return written->as_integer();
  const std::int64_t stated = train::model_classes(recipe).count;
  constexpr std::int64_t kUsual = 2;  // as Transformers
  return stated > 0 ? stated : kUsual;
}

TensorSpec target_of(const resolve::Recipe& recipe, LabelKind kind, std::int64_t vocab_size, std::int64_t length) {
  TensorSpec target = ids(components::kTarget, vocab_size, length);
  target.has_ignored = true;
  target.in_place = are_in_place(kind);
  switch (kind) {
    case LabelKind::kTags:
      target.vocab_size = 0;
      target.num_classes = outputs_of(recipe);
      break;
    case LabelKind::kClass:
      target = {components::kTarget, Dtype::kInt64, {kBatch}, false};
      target.num_classes = outputs_of(recipe);
      break;
    case LabelKind::kClasses:
    case LabelKind::kValues:
      target = {components::kTarget, Dtype::kFloat32, {kBatch, outputs_of(recipe)}, false};
      break;
    case LabelKind::kSpans: target = {components::kTarget, Dtype::kInt64, {kBatch, 2}, false}; break;
    case LabelKind::kChoices:
      target = {components::kTarget, Dtype::kInt64, {kBatch}, false};
      target.num_classes = kTextsEach;
      break;
    default: break;
  }
  return target;
}

BatchSpec signature_of(const resolve::Recipe& recipe, std::int64_t length) {
  const LabelKind kind = train::label_kind(recipe);
  const std::int64_t vocab_size = vocabulary_of(recipe.model);
  const bool has_several = kind == LabelKind::kChoices || have_vectors(kind);
  const std::int64_t row = has_several ? kTextsEach * length : length;
  BatchSpec signature;
  signature.tensors = {ids(components::kInput, vocab_size, row)};
  if (!have_vectors(kind)) signature.tensors.push_back(target_of(recipe, kind, vocab_size, length));
  if (has_several) {
    signature.tensors.push_back(ids(components::kPositions, 0, length));  // they restart at each text
    signature.tensors.push_back({components::kTextsAt, Dtype::kInt64, {kBatch, kTextsEach}, false});
  }
  if (kind == LabelKind::kWritten) signature.tensors.push_back(ids(components::kDecoderInput, vocab_size, length));
  return signature;
}

class ShapedData final : public components::data::Dataset {
 public:
  ShapedData(BatchSpec signature, std::int64_t size) : signature_(std::move(signature)), size_(size) {}

  const BatchSpec& signature() const override { return signature_; }
  std::int64_t size() const override { return size_; }
  void fetch(std::span<const std::int64_t>, components::TensorMap&) const override {
    RUNNER_ASSERT(false, "what has shapes alone is not read");
  }
  std::int64_t tokens_per_sample() const override { return signature_.max_length(); }
  std::string describe() const override { return "shapes alone"; }

 private:
  BatchSpec signature_;
  std::int64_t size_;
};

}  // namespace

std::shared_ptr<components::data::Dataset> shaped_data(const resolve::Recipe& recipe, std::int64_t length,
                                                       std::int64_t size) {
  return std::make_shared<ShapedData>(signature_of(recipe, length), size);
}

}  // namespace runner::engine

#include "runner/engine/data_view.h"

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <utility>

#include "components/data/field_count.h"
#include "components/data/stream.h"
#include "components/generation/text_stream.h"
#include "components/tensor/preferences.h"
#include "components/tensor/several_texts.h"
#include "components/tensor/tensors.h"
#include "components/tokenizer/tokenizer.h"
#include "runner/core/text/suggest.h"
#include "runner/core/text/text.h"
#include "runner/engine/look_at_data.h"
#include "runner/resolve/recipe.h"
#include "runner/train/data/loader.h"
#include "runner/train/experiment/data_sets.h"
#include "runner/train/experiment/stepper_options.h"
#include "runner/train/train.h"

namespace runner::engine {
namespace {

using components::data::Dataset;
using components::tokenizer::Tokenizer;

constexpr std::int64_t kValuesShown = 8;

std::vector<std::int64_t> integers(const at::Tensor& values) {
  const at::Tensor flat = values.to(at::kLong).contiguous();
  const auto* all = flat.const_data_ptr<std::int64_t>();
  return {all, all + flat.numel()};
}

/// Writes ids as text, a piece for each.
class Words {
 public:
  Words(const Dataset& data, std::shared_ptr<const Tokenizer> of_recipe)
      : data_(data), tokenizer_(data.tokenizer()), is_bytes_(tokenizer_ == nullptr && !data.encode("a").empty()) {
    if (tokenizer_ == nullptr && !is_bytes_) tokenizer_ = std::move(of_recipe);
  }

  void write(SampleView& view) const {
    components::generation::TextStream stream([this](std::span<const std::int32_t> ids) { return decode(ids); });
    for (const std::int64_t id : view.ids) {
      const auto token = static_cast<std::int32_t>(id);
      const bool special = tokenizer_ != nullptr && tokenizer_->is_special(token);
      std::string text = tokenizer_ == nullptr && !is_bytes_ ? std::to_string(id) : stream.push(token);
      if (special) text = tokenizer_->token_of(token).value_or(text);
      view.tokens.push_back(std::move(text));
      view.special.push_back(special);
    }
    view.unit = is_bytes_ ? SampleView::Unit::kBytes
                          : (tokenizer_ != nullptr ? SampleView::Unit::kTokens : SampleView::Unit::kIds);
    if (view.in_place || view.is_written) {
      for (const std::int64_t target : view.targets) {
        view.answers.push_back(target == SampleView::kNoTarget ? "" : text_of(target));
      }
      return;
    }
    if (view.targets.empty() || view.targets.back() == SampleView::kNoTarget) return;
    view.last_target = text_of(view.targets.back());
  }

 private:
  std::string text_of(std::int64_t id) const {
    if (tokenizer_ == nullptr && !is_bytes_) return std::to_string(id);
    const auto token = static_cast<std::int32_t>(id);
    if (tokenizer_ != nullptr && tokenizer_->is_special(token)) return tokenizer_->token_of(token).value_or("");
    return decode({&token, 1});
  }

  std::string decode(std::span<const std::int32_t> ids) const {
    if (tokenizer_ != nullptr) return tokenizer_->decode(ids).value();
    return data_.decode(std::vector<std::int64_t>(ids.begin(), ids.end()));
  }

  const Dataset& data_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  bool is_bytes_;
};

/// `float32 [3, 32, 32]`, or the values of a few.
std::string tensor_text(const at::Tensor& one, const components::TensorSpec& spec, const Dataset& data) {
  if (spec.num_classes > 0 && one.numel() == 1) return data.class_name(one.item<std::int64_t>());
  if (one.numel() <= kValuesShown) {
    const at::Tensor flat = one.to(at::kDouble).contiguous();
    const double* all = flat.const_data_ptr<double>();
    return core::joined(std::vector<double>(all, all + flat.numel()), " ",
                        [](double value) { return core::short_number(value, 6); });
  }
  return std::string(components::to_text(spec.dtype)) + " [" + core::joined(one.sizes().vec()) + "]";
}

/// What a head of labels is to tell of the sample.
void add_label(const at::Tensor& one, const components::TensorSpec& target, const Dataset& data, SampleView& view) {
  if (target.num_classes > 0 && one.dim() == 1) {
    for (const std::int64_t tag : integers(one)) {
      view.tags.push_back(tag == components::kPadTarget ? "" : data.class_name(tag));
    }
    return;
  }
  const std::vector<std::string> names = data.target_names();
  if (names.empty()) {
    view.label = tensor_text(one, target, data);
    return;
  }
  std::vector<std::string> of_sample;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (one[static_cast<std::int64_t>(i)].item<double>() > 0) of_sample.push_back(names[i]);
  }
  view.label = of_sample.empty() ? "none" : core::joined(of_sample);
}

/// `batch` has this sample only.
SampleView view_of(const Dataset& data, std::int64_t index, const components::TensorMap& batch,
                   const std::vector<components::data::Part>& parts) {
  SampleView view;
  view.index = index;
  if (!has_ids(data)) {
    view.columns = data.columns_of(index);
    for (const components::TensorSpec& spec : data.signature().tensors) {
      if (!view.columns.empty() && spec.name == components::kInput) continue;
      view.tensors.emplace_back(spec.name, tensor_text(batch.at(spec.name)[0], spec, data));
    }
    if (const auto record = data.record_of(index)) view.parts.push_back(shown_part({0, 0, record}, data));
    return view;
  }
  view.ids = integers(batch.at(components::kInput)[0]);
  const bool own_length = batch.find(components::kDecoderInput) != nullptr;
  const at::Tensor* targets = batch.find(components::kTarget);
  const components::TensorSpec* target = data.signature().find(components::kTarget);
  const bool is_label = target != nullptr && target->vocab_size == 0;
  view.in_place = target != nullptr && target->in_place;
  view.is_written = own_length;
  if (targets != nullptr && !is_label) view.targets = integers((*targets)[0]);
  if (targets != nullptr && is_label) add_label((*targets)[0], *target, data, view);
  if (const at::Tensor* mask = batch.find(components::kAttentionMask)) {
    for (const std::int64_t bit : integers((*mask)[0])) view.mask.push_back(bit != 0);
  }
  const std::int64_t length = length_of(parts);
  const auto width = static_cast<std::int64_t>(view.ids.size());
  if (length > 0 && length < width) {  // the rest is pad_to_multiple_of
    const std::int64_t front = filled_in_front(data, width, length);
    const auto keep = [&](auto& row) {
      if (static_cast<std::int64_t>(row.size()) != width) return;
      row.erase(row.begin() + front + length, row.end());
      row.erase(row.begin(), row.begin() + front);
    };
    keep(view.ids);
    keep(view.mask);
    if (!own_length) keep(view.targets);
    keep(view.tags);
  }
  for (const auto& part : parts) view.parts.push_back(shown_part(part, data));
  return view;
}

/// Samples of the first pass of a stream; returns the number of those before the end of what was read.
std::int64_t view_stream(const resolve::Recipe& recipe, const DataRequest& request, const Dataset& data,
                         const Words& words, DataView& view) {
  const train::Loader::Options loader = train::stepper_options(recipe).loader;
  const auto stream = data.open_stream({request.shuffled && loader.shuffle, loader.seed});
  while (static_cast<std::int64_t>(view.samples.size()) < request.count) {
    const std::int64_t index = stream->position();
    const auto sample = stream->next(true);
    if (sample->pass() > 0) return index;
    if (index < request.first) continue;
    components::TensorMap batch;
    stream->collate(std::span(&sample, 1), batch);
    view.samples.push_back(view_of(data, index, batch, sample->parts()));
    words.write(view.samples.back());
  }
  return stream->position();
}

/// The samples of the first epoch from `first` on, in its order, or in that of the set.
std::vector<std::int64_t> indices_of(const resolve::Recipe& recipe, const DataRequest& request, const Dataset& data,
                                     std::int64_t& size) {
  std::vector<std::int64_t> indices;
  train::Loader::Options options = train::stepper_options(recipe).loader;
  options.num_workers = 0;
  std::optional<train::Loader> loader;
  if (request.shuffled) loader.emplace(data, options);
  size = loader ? loader->samples_per_epoch() : data.size();
  const std::int64_t end = std::min(size, request.first + request.count);
  if (request.first >= end) return indices;
  if (loader) return loader->samples_between({0, request.first}, {0, end});
  for (std::int64_t i = request.first; i < end; ++i) indices.push_back(i);
  return indices;
}

}  // namespace

std::vector<FieldFigures> fields_of(const Dataset& data) {
  std::vector<FieldFigures> fields;
  for (const auto& [name, records, read] : components::data::field_counts_of(data)) {
    fields.push_back({name, records, read});
  }
  return fields;
}

bool has_ids(const Dataset& data) {
  const components::TensorSpec* input = data.signature().find(components::kInput);
  return input != nullptr && input->dtype == components::Dtype::kInt64 && input->shape.size() == 2 &&
         input->vocab_size > 0;
}

std::int64_t length_of(const std::vector<components::data::Part>& parts) {
  return parts.empty() ? 0 : parts.back().begin + parts.back().length;
}

std::int64_t filled_in_front(const Dataset& data, std::int64_t width, std::int64_t length) {
  const auto tokenizer = data.tokenizer();
  // Pairs and texts without a target are filled behind.
  const components::BatchSpec& signature = data.signature();
  if (signature.find(components::kRejectedAt) != nullptr || signature.find(components::kTextsAt) != nullptr ||
      signature.find(components::kTarget) == nullptr) {
    return 0;
  }
  const bool left = tokenizer != nullptr && tokenizer->settings().padding_side == components::tokenizer::Side::kLeft;
  return left ? width - length : 0;
}

SamplePart shown_part(const components::data::Part& part, const Dataset& data) {
  SamplePart shown{.begin = part.begin, .length = part.length, .cut = part.cut};
  if (!part.record) return shown;
  shown.unit = part.record->unit;
  shown.number = part.record->number;
  shown.file = part.record->file;
  const auto files = data.files();
  if (shown.file.empty() && !files.empty()) shown.file = files.front();
  return shown;
}

std::optional<OpenedSet> open_set(const resolve::Recipe& recipe, const DataRequest& request,
                                  core::Diagnostics& diagnostics) {
  std::vector<std::string> names;
  for (const auto& [name, block] : recipe.data) names.push_back(name);
  if (std::find(names.begin(), names.end(), request.data) == names.end()) {
    const std::string near = core::closest(request.data, names);
    diagnostics.error(
        recipe.location("data"), "no data set is called \"" + request.data + "\"",
        (near.empty() ? "" : "did you mean \"" + near + "\"? ") + ("the recipe has " + core::joined(names)));
    return std::nullopt;
  }
  train::configure_torch(recipe);
  train::BuildOptions options;
  options.for_training = false;
  options.data_sets = {request.data};
  OpenedSet opened;
  opened.experiment = train::build_data_sets(recipe, options, diagnostics);
  if (opened.experiment == nullptr) return std::nullopt;
  opened.data = opened.experiment->find_data(request.data);
  const core::Node* type = recipe.root.at_path("data." + request.data + ".type");
  if (type != nullptr) opened.type = type->scalar_text();
  return opened;
}

std::optional<DataView> view_data(const resolve::Recipe& recipe, const DataRequest& request,
                                  core::Diagnostics& diagnostics) {
  if (request.shuffled && request.data != "train") {
    diagnostics.error({}, "--shuffled shows the first epoch's order, and only data.train is shuffled",
                      "remove --shuffled, or use --data train");
    return std::nullopt;
  }
  const auto opened = open_set(recipe, request, diagnostics);
  if (!opened) return std::nullopt;
  std::shared_ptr<const Tokenizer> of_recipe;
  const bool says_text = opened->data->tokenizer() != nullptr || !opened->data->encode("a").empty();
  if (has_ids(*opened->data) && !says_text) {
    const auto source = components::data::tokenizer_source(recipe.tokenizer, diagnostics);
    if (source) of_recipe = source();
    if (diagnostics.has_errors()) return std::nullopt;
  }
  DataView view{request.data, opened->type, opened->data->describe(), 0, {}, {}};
  const Words words(*opened->data, of_recipe);
  if (opened->data->is_stream()) {
    view.size = view_stream(recipe, request, *opened->data, words, view);
  } else {
    components::data::Turn turn{0, request.first};
    for (const std::int64_t index : indices_of(recipe, request, *opened->data, view.size)) {
      components::TensorMap batch;
      opened->data->fetch_at(turn, std::array{index}, batch);
      ++turn.position;
      view.samples.push_back(view_of(*opened->data, index, batch, opened->data->parts_of(index)));
      if (!view.samples.back().ids.empty()) words.write(view.samples.back());
    }
  }
  if (view.samples.empty()) {
    diagnostics.error({},
                      "data." + request.data + " has no sample " + std::to_string(request.first) + ": it has " +
                          core::counted_large(view.size, "sample", "samples"),
                      "samples are counted from 0 to " + std::to_string(view.size - 1));
    return std::nullopt;
  }
  if (opened->data->is_stream()) view.size = 0;
  view.fields = fields_of(*opened->data);
  return view;
}

}  // namespace runner::engine

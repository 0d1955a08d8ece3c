#include "runner/engine/data_view.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <utility>

#include "components/tensor/preferences.h"
#include "components/tensor/tensors.h"
#include "generated/section/launch.h"
#include "runner/core/text/text.h"
#include "runner/engine/data_figures.h"
#include "runner/engine/look_at_data.h"
#include "runner/resolve/recipe.h"
#include "runner/train/data/batch_schedule.h"
#include "runner/train/data/epoch_order.h"
#include "runner/train/data/label_kind.h"
#include "runner/train/experiment/stepper_options.h"

// L: lengths of the samples, in positions without padding

namespace runner::engine {
namespace {

using components::data::Dataset;
using Lengths = std::vector<std::int32_t>;

constexpr std::int64_t kPositionsAtOnce = 1 << 20;  ///< of a batch that is looked at

using Groups = std::shared_ptr<const std::vector<std::vector<std::int64_t>>>;  ///< EpochOrder::Options

/// What a recipe's loader does to samples of these lengths in its first epoch.
PaddingFigures padding_of(const Lengths& lengths, std::int64_t shuffle_block, const train::Loader::Options& loader,
                          std::int64_t multiple, const Groups& groups = nullptr) {
  train::EpochOrder::Options order_options{.size = static_cast<std::int64_t>(lengths.size()),
                                           .block = shuffle_block,
                                           .shuffle = loader.shuffle,
                                           .seed = loader.seed,
                                           .num_samples = loader.num_samples,
                                           .replacement = loader.replacement,
                                           .groups = groups,
                                           .seedable = loader.seedable,
                                           .one_generator = loader.even && loader.ranks > 1};
  if (loader.group_by_length) {
    order_options.group = loader.micro_batch_size;
    order_options.length_of = [&lengths](std::int64_t sample) { return lengths[static_cast<std::size_t>(sample)]; };
  }
  const auto schedule = train::BatchSchedule::of({.samples = train::EpochOrder::length(order_options),
                                                  .micro_batch_size = loader.micro_batch_size,
                                                  .ranks = loader.ranks,
                                                  .drop_last = loader.drop_last,
                                                  .even = loader.even,
                                                  .cuts_last_round = loader.cuts_last_round});
  train::EpochOrder order(order_options);
  BatchPadding padding(multiple);
  for (std::int64_t at = 0; at < schedule.samples_per_epoch;) {
    const std::int64_t count = schedule.batch_at({0, at});
    for (const std::int64_t sample : order.read(0, at, count)) padding.add(lengths[static_cast<std::size_t>(sample)]);
    padding.end_batch();
    at += count;
  }
  return padding.figures();
}

/// Lengths of the rows that `packing` makes.
Lengths packed_rows(const Lengths& lengths, std::int64_t row_length) {
  Lengths rows;
  LengthPacker packer(row_length, [&rows](std::int64_t length) { rows.push_back(static_cast<std::int32_t>(length)); });
  for (const std::int64_t length : lengths) packer.add(length);
  packer.flush();
  return rows;
}

LengthFigures figures_of(const Lengths& lengths) {
  std::map<std::int64_t, std::int64_t> samples;
  for (const std::int32_t length : lengths) ++samples[length];
  return length_figures(samples);
}

/// Counts the samples of a set, batch by batch, in the set's order.
class Counter {
 public:
  Counter(const Dataset& data, DataStats& stats) : data_(data), stats_(stats) {
    stats_.vocabulary = data.signature().at(components::kInput).vocab_size;
    used_.resize(static_cast<std::size_t>(stats_.vocabulary));
    padded_ = data.signature().padded();
  }

  void count(const std::function<void(std::int64_t, std::int64_t)>& progress) {
    const std::int64_t longest = std::max<std::int64_t>(1, data_.signature().max_length());
    const std::int64_t at_once = std::clamp<std::int64_t>(kPositionsAtOnce / longest, 1, 1024);
    const std::int64_t size = data_.size();
    for (std::int64_t begin = 0; begin < size; begin += at_once) {
      std::vector<std::int64_t> indices(static_cast<std::size_t>(std::min(at_once, size - begin)));
      std::iota(indices.begin(), indices.end(), begin);
      add(indices);
      if (progress) progress(begin + static_cast<std::int64_t>(indices.size()), size);
    }
    stats_.vocabulary_used = std::count(used_.begin(), used_.end(), true);
  }

  /// [samples]; empty where all are of one length.
  const Lengths& lengths() const { return lengths_; }

 private:
  void add(const std::vector<std::int64_t>& indices) {
    components::TensorMap batch;
    data_.fetch(indices, batch);
    const at::Tensor input = batch.at(components::kInput).contiguous();
    const at::Tensor* target = batch.find(components::kTarget);
    if (target != nullptr) count_targets(*target);
    const auto* ids = input.const_data_ptr<std::int64_t>();
    for (std::size_t i = 0; i < indices.size(); ++i) {
      const std::int64_t length = padded_ ? measured(indices[i]) : input.size(1);
      stats_.tokens += length;
      const std::int64_t* row =
          ids + static_cast<std::int64_t>(i) * input.size(1) + filled_in_front(data_, input.size(1), length);
      for (std::int64_t k = 0; k < length; ++k) used_[static_cast<std::size_t>(row[k])] = true;
    }
  }

  /// Ids that are learnt, or the classes of labels.
  void count_targets(const at::Tensor& target) {
    const components::TensorSpec& spec = data_.signature().at(components::kTarget);
    if (spec.vocab_size > 0) {
      stats_.target_tokens += target.ne(components::kPadTarget).sum().item<std::int64_t>();
      return;
    }
    if (stats_.classes.empty()) {
      const auto names = spec.num_classes > 0 ? train::class_names(data_) : data_.target_names();
      for (const std::string& name : names) stats_.classes.emplace_back(name, 0);
    }
    for (std::size_t i = 0; i < stats_.classes.size(); ++i) {
      const auto number = static_cast<std::int64_t>(i);
      const at::Tensor is_it = spec.num_classes > 0 ? target.eq(number) : target.select(1, number).gt(0);
      stats_.classes[i].second += is_it.sum().item<std::int64_t>();
    }
  }

  std::int64_t measured(std::int64_t index) {
    const auto parts = data_.parts_of(index);
    const std::int64_t length = length_of(parts);
    lengths_.push_back(static_cast<std::int32_t>(length));
    for (const auto& part : parts) {
      if (stats_.longest_part && part.length <= stats_.longest_part->length) continue;
      stats_.longest_part = shown_part(part, data_);
      stats_.longest = index;
    }
    return length;
  }

  const Dataset& data_;
  DataStats& stats_;
  std::vector<bool> used_;
  bool padded_ = false;
  Lengths lengths_;
};

train::Loader::Options loader_of(const resolve::Recipe& recipe, const std::string& set) {
  train::Loader::Options loader = train::stepper_options(recipe).loader;
  loader.ranks = static_cast<int>(recipe.launch->num_processes);
  if (set == "train") return loader;
  train::Loader::Options in_order;  // of an evaluation
  in_order.micro_batch_size = train::eval_micro_batch(recipe);
  return in_order;
}

/// What of a set's block decides about padding.
struct Block {
  std::int64_t multiple = 1;    ///< `pad_to_multiple_of`
  std::int64_t row_length = 0;  ///< `max_seq_len`; 0: none
  bool may_pack = false;        ///< it has rows, and does not pack them
};

Block block_of(const resolve::Recipe& recipe, const Dataset& data, const std::string& set) {
  const auto number = [&](const char* key) -> std::int64_t {
    const core::Node* value = recipe.root.at_path("data." + set + "." + key);
    return value != nullptr && value->is_integer() ? value->as_integer() : 0;
  };
  const core::Node* packing = recipe.root.at_path("data." + set + ".packing");
  const bool may_pack = packing != nullptr && packing->is_bool() && !packing->as_bool() &&
                        data.signature().find(components::kDecoderInput) == nullptr &&
                        data.signature().find(components::kRejectedAt) == nullptr &&
                        data.signature().find(components::kTarget) != nullptr &&
                        data.signature().at(components::kTarget).vocab_size > 0;
  return {std::max<std::int64_t>(1, number("pad_to_multiple_of")), number("max_seq_len"), may_pack};
}

/// Of the sets whose samples differ in length: their batches, and what other settings would make of them.
void add_padding(const resolve::Recipe& recipe, const OpenedSet& opened, const Lengths& lengths, DataStats& stats) {
  const Block its = block_of(recipe, *opened.data, stats.set);
  train::Loader::Options loader = loader_of(recipe, stats.set);
  const std::int64_t block = opened.data->shuffle_block();
  Groups groups;
  if (loader.balance_classes)
    groups = std::make_shared<const std::vector<std::vector<std::int64_t>>>(train::samples_by_class(*opened.data));
  stats.padding = padding_of(lengths, block, loader, its.multiple, groups);
  const bool may_group = !loader.group_by_length && !loader.replacement && !loader.balance_classes;
  if (stats.set == "train" && may_group && loader.micro_batch_size > 1) {
    train::Loader::Options grouped = loader;
    grouped.group_by_length = true;
    stats.grouped = padding_of(lengths, block, grouped, its.multiple);
  }
  if (!its.may_pack) return;
  stats.row_length = its.row_length > 0 ? its.row_length : stats.lengths.most;
  stats.packed = padding_of(packed_rows(lengths, stats.row_length), block, loader, its.multiple);
}

}  // namespace

std::optional<DataStats> data_stats(const resolve::Recipe& recipe, const DataRequest& request,
                                    core::Diagnostics& diagnostics) {
  const auto opened = open_set(recipe, request, diagnostics);
  if (!opened) return std::nullopt;
  const Dataset& data = *opened->data;
  if (request.most > 0 && !data.is_stream()) {
    diagnostics.error({}, "--first is for a stream, and data." + request.data + " is not one",
                      "remove --first: the set is read as a whole in any case");
    return std::nullopt;
  }
  DataStats stats;
  stats.set = request.data;
  stats.type = opened->type;
  stats.description = data.describe();
  stats.micro_batch_size = loader_of(recipe, request.data).micro_batch_size;
  if (data.is_stream()) {
    const train::Loader::Options loader = loader_of(recipe, request.data);
    const Block its = block_of(recipe, data, request.data);
    count_stream(
        data, request,
        {{loader.shuffle, loader.seed}, loader.micro_batch_size, its.multiple, its.may_pack ? its.row_length : 0},
        stats);
    stats.fields = fields_of(data);
    return stats;
  }
  const auto account = data.account();
  stats.fields = fields_of(data);
  stats.samples = data.size();
  stats.records = account.records;
  stats.cut = account.cut;
  stats.dropped = account.dropped;
  stats.skipped = account.skipped;
  stats.reasons = account.reasons;
  if (!has_ids(data)) {
    for (const auto& [name, value] : data.columns_of(0)) stats.columns.push_back(name);
    for (const components::TensorSpec& spec : data.signature().tensors) {
      stats.tensors.emplace_back(spec.name, components::to_text(spec.dtype) + std::string(" [") +
                                                core::joined(std::span(spec.shape).subspan(1)) + "]");
    }
    return stats;
  }
  Counter counter(data, stats);
  counter.count(request.progress);
  const std::int64_t one_length = stats.tokens / std::max<std::int64_t>(1, stats.samples);
  if (counter.lengths().empty()) {
    stats.lengths = {one_length, one_length, one_length,     one_length, one_length, static_cast<double>(one_length),
                     1,          one_length, {stats.samples}};
    return stats;
  }
  stats.lengths = figures_of(counter.lengths());
  add_padding(recipe, *opened, counter.lengths(), stats);
  return stats;
}

}  // namespace runner::engine

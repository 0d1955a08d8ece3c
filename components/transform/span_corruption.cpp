#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "components/tensor/positions.h"
#include "components/tensor/preferences.h"
#include "components/tensor/several_texts.h"
#include "components/tensor/tensors.h"
#include "components/tokenizer/tokenizer.h"
#include "components/transform/spans.h"
#include "components/transform/transform.h"
#include "generated/transform/span_corruption.h"  // Config; declares make()
#include "runner/core/error.h"
#include "runner/core/text/text.h"

// S: positions of the source   T: positions of the target

namespace components::transform::span_corruption {
namespace {

using Ids = std::vector<std::int64_t>;

/// What spans need to know of a tokenizer, by id.
struct Vocabulary {
  std::vector<std::int32_t> sentinels;  ///< in the order of their numbers
  std::int32_t end = 0, fill = 0;
};

std::int64_t source_length(std::int64_t length, const SpanCounts& counts) {
  return length - counts.tokens + counts.spans + 1;
}

std::int64_t target_length(const SpanCounts& counts) { return counts.tokens + counts.spans + 1; }

at::Tensor row_of(const Ids& ids) { return at::tensor(ids, at::kLong).unsqueeze(0); }

class SpanCorruption final : public Transform {
 public:
  SpanCorruption(const Config& config, const BatchSpec& data, Vocabulary vocabulary, std::int32_t decoder_start,
                 std::string set)
      : config_(config),
        vocabulary_(std::move(vocabulary)),
        decoder_start_(decoder_start),
        set_(std::move(set)),
        are_texts_(data.find(kAttentionMask) != nullptr) {
    TensorSpec source = data.at(kInput);
    const std::int64_t length = source.max_length;
    source.padded = source.padded || are_texts_;
    source.max_length = source_length(length, counts_of(length));
    TensorSpec target = source;
    target.name = kTarget;
    target.max_length = target_length(counts_of(length));
    target.has_ignored = true;
    TensorSpec read = target;
    read.name = kDecoderInput;
    read.has_ignored = false;
    signature_.tensors = {source, target};
    if (are_texts_) {
      TensorSpec mask = source;
      mask.name = kAttentionMask;
      mask.dtype = Dtype::kBool;
      mask.vocab_size = 0;
      signature_.tensors.push_back(mask);
    }
    signature_.tensors.push_back(read);
  }

  BatchSpec signature() const override { return signature_; }
  bool changes_lengths() const override { return true; }

  std::int64_t longest_of(std::int64_t positions) const override {
    const SpanCounts counts = counts_of(positions);
    return std::max(source_length(positions, counts), target_length(counts));
  }

  std::int64_t fill_of(std::string_view tensor) const override {
    return tensor == kTarget ? kPadTarget : tensor == kAttentionMask ? 0 : vocabulary_.fill;
  }

  void apply(TensorMap& sample, const Draw& draw) const override {
    const at::Tensor input = sample.at(kInput).contiguous(), own = sample.at(kTarget).contiguous();  // [1, S]
    const auto given = static_cast<std::size_t>(input.size(1));
    std::span<const std::int64_t> ids(input.const_data_ptr<std::int64_t>(), given);
    refuse_labels(ids, {own.const_data_ptr<std::int64_t>(), given});
    // Rows that were cut out of a long text have no end of their own.
    if (are_texts_ && !ids.empty() && ids.back() == vocabulary_.end) ids = ids.first(given - 1);
    const auto length = static_cast<std::int64_t>(ids.size());
    const CutText cut =
        cut_spans(ids, span_mask(length, counts_of(length), draw), vocabulary_.sentinels, vocabulary_.end);
    Ids read = {decoder_start_};
    read.insert(read.end(), cut.target.begin(), cut.target.end() - 1);
    sample.set(kInput, row_of(cut.source));
    sample.set(kTarget, row_of(cut.target));
    if (are_texts_) sample.set(kAttentionMask, at::ones({1, std::ssize(cut.source)}, at::kBool));
    sample.set(kDecoderInput, row_of(read));
  }

  std::string describe() const override {
    return runner::core::short_number(100 * config_.noise_density, 4) + " % of tokens cut out in spans of " +
           runner::core::short_number(config_.mean_noise_span_length, 4);
  }

 private:
  SpanCounts counts_of(std::int64_t length) const {
    return span_counts(length, config_.noise_density, config_.mean_noise_span_length);
  }

  void refuse_labels(std::span<const std::int64_t> ids, std::span<const std::int64_t> own) const {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (own[i] == kPadTarget || own[i] == ids[i]) continue;
      throw runner::core::RunError(set_ + ": a line has labels, and span_corruption makes those of each line itself",
                                   "remove labels from the lines, or transforms from " + set_);
    }
  }

  Config config_;
  Vocabulary vocabulary_;
  std::int32_t decoder_start_;
  std::string set_;
  bool are_texts_;
  BatchSpec signature_;
};

/// Whether the tensors are ids of single texts; else an error.
bool are_texts(const Inputs& inputs) {
  const TensorSpec *input = inputs.data.find(kInput), *target = inputs.data.find(kTarget);
  const auto refuse = [&](const std::string& what, const std::string& hint) {
    inputs.diagnostics.error(inputs.block.location(),
                             "span_corruption cuts spans out of single texts, and " + inputs.set + what, hint);
    return false;
  };
  if (input == nullptr || input->vocab_size == 0) return refuse(" has none", "remove transforms");
  if (inputs.data.find(kDecoderInput) != nullptr) {
    return refuse(" has sources and targets already", "remove this transform");
  }
  if (inputs.data.find(kRejectedAt) != nullptr) {
    return refuse(" has pairs of chosen and rejected", "use records of texts");
  }
  if (inputs.data.find(kPositions) != nullptr) {
    return refuse(" has several in a row", "remove packing from " + inputs.set);
  }
  if (target == nullptr || !target->in_place) {
    return refuse(" is not made of ids of a tokenizer",
                  "give the recipe a tokenizer: {type: file, path: FOLDER} that has sentinels <extra_id_0>, ...");
  }
  return true;
}

/// Nothing when an error was reported.
std::optional<Vocabulary> vocabulary_of(const Config& config, const Inputs& inputs) {
  const tokenizer::Tokenizer& tokenizer = *inputs.tokenizer;
  const std::string file = runner::core::in_quotes(tokenizer.description().path);
  const TensorSpec& input = inputs.data.at(kInput);
  const auto refuse = [&](const std::string& what, const std::string& hint) {
    inputs.diagnostics.error(inputs.block.location(), what, hint);
    return std::nullopt;
  };
  Vocabulary vocabulary;
  while (const auto id = tokenizer.id_of("<extra_id_" + std::to_string(vocabulary.sentinels.size()) + ">")) {
    vocabulary.sentinels.push_back(*id);
  }
  if (vocabulary.sentinels.empty()) {
    return refuse("span_corruption needs sentinels, and the tokenizer " + file + " has no token <extra_id_0>",
                  "use the tokenizer of a T5");
  }
  if (!tokenizer.special().eos) {
    return refuse("span_corruption needs an end token, and the tokenizer " + file + " has none",
                  "name one of its tokens as eos_token in the tokenizer_config.json beside it");
  }
  vocabulary.end = *tokenizer.special().eos;
  vocabulary.fill = *tokenizer.fill_id();
  const std::int32_t most = std::max(vocabulary.end, *std::ranges::max_element(vocabulary.sentinels));
  if (most >= input.vocab_size) {
    return refuse("ids of sentinels and the end token of " + file + " are up to " + std::to_string(most) +
                      ", and ids of " + inputs.set + " are below " + std::to_string(input.vocab_size),
                  "use the tokenizer of the data, or a larger vocab_size");
  }
  const SpanCounts counts = span_counts(input.max_length, config.noise_density, config.mean_noise_span_length);
  const auto sentinels = std::ssize(vocabulary.sentinels);
  if (counts.spans > sentinels) {
    return refuse("span_corruption cuts " + std::to_string(counts.spans) + " spans out of " +
                      std::to_string(input.max_length) + " tokens, and the tokenizer " + file + " has " +
                      runner::core::counted(sentinels, "sentinel", "sentinels"),
                  "use a larger mean_noise_span_length, a lower noise_density, or a smaller max_seq_len");
  }
  return vocabulary;
}

}  // namespace

std::shared_ptr<Transform> make(const Config& config, const Inputs& inputs) {
  if (!are_texts(inputs)) return nullptr;
  if (inputs.tokenizer == nullptr) {
    inputs.diagnostics.error(inputs.block.location(),
                             "span_corruption needs the sentinels of a tokenizer, and the recipe has no tokenizer",
                             "add tokenizer: {type: file, path: FOLDER}");
    return nullptr;
  }
  auto vocabulary = vocabulary_of(config, inputs);
  if (!vocabulary) return nullptr;
  return std::make_shared<SpanCorruption>(config, inputs.data, std::move(*vocabulary), inputs.decoder_start,
                                          inputs.set);
}

}  // namespace components::transform::span_corruption

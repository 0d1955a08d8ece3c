#include <ATen/ATen.h>

#include <algorithm>
#include <mutex>

#include "components/data/block_location.h"
#include "components/data/byte_stream.h"
#include "components/data/language/token_text.h"
#include "components/data/recipe_tokenizer.h"
#include "components/data/same_task.h"
#include "components/data/text_bytes.h"
#include "components/data/text_files.h"
#include "components/data/text_utils.h"
#include "components/tensor/tensors.h"
#include "generated/data/text.h"
#include "runner/core/error.h"
#include "runner/core/platform/machine.h"
#include "runner/core/text/text.h"
#include "runner/core/units.h"

// B: samples of the batch   T: bytes of a window

namespace components::data::text {
namespace {

constexpr std::int64_t kBytes = 256;  ///< the vocabulary
/// Size of the blocks that are permuted when a stream is shuffled, and their minimum number.
constexpr std::int64_t kShuffleBlockBytes = std::int64_t{256} << 10;
constexpr std::int64_t kShuffleBlocksMin = 64;

BatchSpec signature_of(std::int64_t max_seq_len) {
  BatchSpec signature;
  signature.tensors = {{kInput, Dtype::kInt64, {kBatch, kTime}, false},
                       {kTarget, Dtype::kInt64, {kBatch, kTime}, false}};
  for (TensorSpec& port : signature.tensors) {
    port.vocab_size = kBytes;
    port.max_length = max_seq_len;
  }
  return signature;
}

class Text final : public Dataset {
 public:
  Text(std::unique_ptr<ByteStream> stream, std::int64_t max_seq_len, std::int64_t stride, bool streaming)
      : signature_(signature_of(max_seq_len)), stream_(std::move(stream)), stride_(stride), streaming_(streaming) {
    size_ = (stream_->size() - max_seq_len - 1) / stride + 1;
  }

  const BatchSpec& signature() const override { return signature_; }
  std::int64_t size() const override { return size_; }
  std::int64_t tokens_per_sample() const override { return signature_.max_length(); }

  void fetch(std::span<const std::int64_t> indices, TensorMap& batch) const override {
    const auto samples = static_cast<std::int64_t>(indices.size());
    const std::int64_t length = signature_.max_length();
    at::Tensor input_BT = at::empty({samples, length}, at::kLong);
    at::Tensor target_BT = at::empty({samples, length}, at::kLong);
    auto* input = input_BT.mutable_data_ptr<std::int64_t>();
    auto* target = target_BT.mutable_data_ptr<std::int64_t>();
    std::vector<unsigned char> scratch;
    for (const std::int64_t index : indices) {
      RUNNER_ASSERT(index >= 0 && index < size_, "the sampler keeps to the data set");
      const unsigned char* bytes = stream_->read(index * stride_, length + 1, scratch);
      input = std::copy_n(bytes, length, input);
      target = std::copy_n(bytes + 1, length, target);
    }
    batch.set(kInput, std::move(input_BT));
    batch.set(kTarget, std::move(target_BT));
  }

  std::int64_t shuffle_block() const override {
    if (!streaming_) return 0;
    return std::clamp<std::int64_t>(kShuffleBlockBytes / stride_, 1,
                                    std::max<std::int64_t>(size_ / kShuffleBlocksMin, 1));
  }

  double unigram_entropy() const override {
    std::call_once(counted_, [this] { entropy_ = entropy_of(stream_->histogram()); });
    return entropy_;
  }

  std::string describe() const override {
    return counted_large(stream_->file_count(), "file", "files") + ", " + runner::core::format_bytes(stream_->size()) +
           ", " + counted_large(size_, "sample", "samples") + " of " +
           counted_large(signature_.max_length(), "byte", "bytes");
  }

  std::vector<std::string> files() const override { return stream_->paths(); }

  std::vector<Part> parts_of(std::int64_t index) const override {
    std::vector<Part> parts;
    std::int64_t begin = 0;
    for (const auto& place : stream_->places(index * stride_, signature_.max_length())) {
      parts.push_back({begin, place.bytes, Record{"byte", place.offset + 1, place.path}});
      begin += place.bytes;
    }
    return parts;
  }

  std::int64_t memory_bytes() const override { return streaming_ ? 0 : stream_->size(); }

  std::string decode(std::span<const std::int64_t> ids) const override { return text_of_bytes(ids); }

  std::vector<std::int64_t> encode(const std::string& text) const override { return bytes_of_text(text); }

 private:
  BatchSpec signature_;
  std::unique_ptr<ByteStream> stream_;
  std::int64_t stride_;
  bool streaming_;
  std::int64_t size_ = 0;
  mutable std::once_flag counted_;
  mutable double entropy_ = 0;
};

std::string short_hint(std::int64_t bytes) {
  if (bytes < 2) return "use more text";
  return "use max_seq_len: " + std::to_string(bytes - 1) + " or less, or use more text";
}

}  // namespace

std::shared_ptr<Dataset> make(const Config& config, const Inputs& inputs) {
  const auto tokenizer = tokenizer_of(config.tokenizer, inputs);
  if (!tokenizer) return nullptr;
  if (*tokenizer == nullptr && !fits_training_set(signature_of(config.max_seq_len), inputs)) return nullptr;
  std::vector<TextFile> files = find_text_files(config.path, config.exclude, FileKind::kBytes, inputs);
  if (files.empty()) return nullptr;
  const auto share = apply_split(config.split, config.split_by == SplitBy::kFiles, "bytes", files, inputs);
  if (!share) return nullptr;
  if (*tokenizer != nullptr) {
    if (config.streaming) {
      inputs.diagnostics.error(location_of(inputs.block, "streaming"),
                               "data." + inputs.name + " is streamed, but tokens of a tokenizer are made in memory",
                               "remove streaming, or use a data set of type tokens");
      return nullptr;
    }
    return make_token_text(
        files,
        {config.max_seq_len, config.stride.value_or(config.max_seq_len), *share, inputs.labels == LabelKind::kUnmasked},
        *tokenizer, inputs);
  }
  const std::int64_t whole = total_bytes(files);
  const std::int64_t begin = share->begin(whole);
  const std::int64_t end = share->end(whole);
  if (end - begin < config.max_seq_len + 1) {
    inputs.diagnostics.error(location_of(inputs.block, "max_seq_len"),
                             "data." + inputs.name + " has " + counted_large(end - begin, "byte", "bytes") +
                                 ", and a sample takes max_seq_len + 1 = " + with_commas(config.max_seq_len + 1),
                             short_hint(end - begin));
    return nullptr;
  }
  if (!config.streaming && end - begin > runner::core::memory_limit()) {
    inputs.diagnostics.error(location_of(inputs.block, "path"),
                             "data." + inputs.name + " has " + runner::core::format_bytes(end - begin) +
                                 ", but this machine has " + runner::core::format_bytes(runner::core::memory_limit()) +
                                 " of memory",
                             "set streaming: true");
    return nullptr;
  }
  const bool hold = !config.streaming && !inputs.header_only;
  try {
    return std::make_shared<Text>(std::make_unique<ByteStream>(files, begin, end, hold), config.max_seq_len,
                                  config.stride.value_or(config.max_seq_len), config.streaming);
  } catch (const runner::core::RunError& error) {
    inputs.diagnostics.error(location_of(inputs.block, "path"), error.what(), error.hint());
    return nullptr;
  }
}

}  // namespace components::data::text

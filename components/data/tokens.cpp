#include <ATen/ATen.h>

#include <mutex>

#include "components/data/block_location.h"
#include "components/data/data.h"
#include "components/data/same_task.h"
#include "components/data/text_files.h"
#include "components/data/text_utils.h"
#include "components/data/token_stream.h"
#include "components/data/token_type.h"
#include "components/tensor/tensors.h"
#include "generated/data/tokens.h"
#include "runner/core/error.h"
#include "runner/core/text/text.h"
#include "runner/core/units.h"

// B: samples of the batch   T: tokens of a window

namespace components::data::tokens {
namespace {

BatchSpec signature_of(const Config& config, bool in_place) {
  BatchSpec signature;
  signature.tensors = {{kInput, components::Dtype::kInt64, {kBatch, kTime}, false},
                       {kTarget, components::Dtype::kInt64, {kBatch, kTime}, false}};
  for (TensorSpec& port : signature.tensors) {
    port.vocab_size = config.vocab_size;
    port.max_length = config.max_seq_len;
  }
  signature.find(kTarget)->in_place = in_place;
  return signature;
}

class Tokens final : public Dataset {
 public:
  Tokens(const Config& config, BatchSpec signature, std::unique_ptr<TokenStream> stream, std::int64_t bytes)
      : signature_(std::move(signature)),
        stream_(std::move(stream)),
        stride_(config.stride.value_or(config.max_seq_len)),
        size_((stream_->size() - config.max_seq_len - 1) / stride_ + 1),
        bytes_(bytes) {}

  const BatchSpec& signature() const override { return signature_; }
  std::int64_t size() const override { return size_; }
  std::int64_t tokens_per_sample() const override { return signature_.max_length(); }

  void fetch(std::span<const std::int64_t> indices, TensorMap& batch) const override {
    const auto samples = static_cast<std::int64_t>(indices.size());
    const std::int64_t length = signature_.max_length();
    std::vector<std::int64_t> starts;
    starts.reserve(indices.size());
    for (const std::int64_t index : indices) {
      RUNNER_ASSERT(index >= 0 && index < size_, "the sampler keeps to the data set");
      starts.push_back(index * stride_);
    }
    at::Tensor input_BT = at::empty({samples, length}, at::kLong);
    at::Tensor target_BT = at::empty({samples, length}, at::kLong);
    stream_->read({starts.data(), samples, length, input_BT.mutable_data_ptr<std::int64_t>(),
                   target_BT.mutable_data_ptr<std::int64_t>()});
    if (signature_.at(kTarget).in_place) target_BT.copy_(input_BT);
    batch.set(kInput, std::move(input_BT));
    batch.set(kTarget, std::move(target_BT));
  }

  double unigram_entropy() const override {
    std::call_once(counted_, [this] { entropy_ = stream_->unigram_entropy(); });
    return entropy_;
  }

  std::string describe() const override {
    return counted_large(stream_->file_count(), "file", "files") + ", " + runner::core::format_bytes(bytes_) + ", " +
           counted_large(size_, "sample", "samples") + " of " +
           counted_large(signature_.max_length(), "token", "tokens");
  }

  std::vector<std::string> files() const override { return stream_->paths(); }

  std::vector<Part> parts_of(std::int64_t index) const override {
    std::vector<Part> parts;
    std::int64_t begin = 0;
    for (const auto& place : stream_->places(index * stride_, signature_.max_length())) {
      parts.push_back({begin, place.tokens, Record{"token", place.offset + 1, place.path}});
      begin += place.tokens;
    }
    return parts;
  }

 private:
  BatchSpec signature_;
  std::unique_ptr<TokenStream> stream_;
  std::int64_t stride_, size_, bytes_;
  mutable std::once_flag counted_;
  mutable double entropy_ = 0;
};

/// A file that is no multiple of the token size was written with another type, or is incomplete.
bool hold_whole_tokens(const std::vector<TextFile>& files, const TokenStream::Layout& layout, const char* dtype,
                       const Inputs& inputs) {
  bool whole = true;
  for (const TextFile& file : files) {
    const std::int64_t body = file.bytes - layout.header_bytes;
    if (body >= 0 && body % layout.token_bytes == 0) continue;
    whole = false;
    if (body < 0) {
      inputs.diagnostics.error(location_of(inputs.block, "header_bytes"),
                               "header_bytes is " + with_commas(layout.header_bytes) + ", but \"" + file.path +
                                   "\" has " + counted_large(file.bytes, "byte", "bytes"));
    } else {
      inputs.diagnostics.error(location_of(inputs.block, "path"),
                               "\"" + file.path + "\" has " + counted_large(body, "byte", "bytes") +
                                   " of tokens, not a " + "multiple of the " + std::to_string(layout.token_bytes) +
                                   " of a " + dtype,
                               "check dtype and header_bytes against the program that wrote the file");
    }
  }
  return whole;
}

/// Tokens of another type are ids as well, and a training on them shows nothing but a loss that means nothing.
bool are_of_type(const std::vector<TextFile>& files, const TokenStream::Layout& layout, const Inputs& inputs) {
  for (const TextFile& file : files) {
    const OtherType other = look_at_type(file.path, layout);
    if (other.what.empty()) continue;
    inputs.diagnostics.error(location_of(inputs.block, "dtype"), "\"" + file.path + "\" " + other.what, other.hint);
    return false;
  }
  return true;
}

}  // namespace

std::shared_ptr<Dataset> make(const Config& config, const Inputs& inputs) {
  const BatchSpec signature = signature_of(config, inputs.labels == LabelKind::kUnmasked);
  if (!fits_training_set(signature, inputs)) return nullptr;
  if (inputs.train != nullptr && inputs.train->signature().at(kInput).vocab_size != config.vocab_size) {
    inputs.diagnostics.error(location_of(inputs.block, "vocab_size"),
                             "vocab_size of data." + inputs.name + " is " + std::to_string(config.vocab_size) +
                                 ", and that of data.train " +
                                 std::to_string(inputs.train->signature().at(kInput).vocab_size),
                             "set the same vocab_size for both: one model reads them");
    return nullptr;
  }
  std::vector<TextFile> files = find_text_files(config.path, config.exclude, FileKind::kBytes, inputs);
  if (files.empty()) return nullptr;
  const bool wide = config.dtype == Dtype::kUint32;
  const TokenStream::Layout layout{wide ? 4 : 2, config.header_bytes, config.vocab_size};
  if (!hold_whole_tokens(files, layout, wide ? "uint32" : "uint16", inputs)) return nullptr;
  if (!are_of_type(files, layout, inputs)) return nullptr;
  const auto share = apply_split(config.split, config.split_by == SplitBy::kFiles, "tokens", files, inputs);
  if (!share) return nullptr;

  std::int64_t whole = 0;
  for (const TextFile& file : files) whole += TokenStream::tokens_in(file, layout);
  const std::int64_t begin = share->begin(whole);
  const std::int64_t end = share->end(whole);
  if (end - begin < config.max_seq_len + 1) {
    inputs.diagnostics.error(
        location_of(inputs.block, "max_seq_len"),
        "data." + inputs.name + " has " + counted_large(end - begin, "token", "tokens") +
            ", and a sample takes max_seq_len + 1 = " + with_commas(config.max_seq_len + 1),
        end - begin < 2 ? "use more tokens"
                        : "use max_seq_len: " + std::to_string(end - begin - 1) + " or less, or use more tokens");
    return nullptr;
  }
  try {
    return std::make_shared<Tokens>(config, signature, std::make_unique<TokenStream>(files, begin, end, layout),
                                    (end - begin) * layout.token_bytes);
  } catch (const runner::core::RunError& error) {
    inputs.diagnostics.error(location_of(inputs.block, "path"), error.what(), error.hint());
    return nullptr;
  }
}

}  // namespace components::data::tokens

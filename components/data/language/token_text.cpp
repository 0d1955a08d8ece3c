#include "components/data/language/token_text.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "components/data/block_location.h"
#include "components/data/in_memory.h"
#include "components/data/same_task.h"
#include "components/data/text_utils.h"
#include "components/tensor/tensors.h"
#include "runner/core/error.h"
#include "runner/core/platform/files.h"
#include "runner/core/text/text.h"
#include "runner/core/units.h"

// B: samples of the batch   T: tokens of a window

namespace components::data {
namespace {

using Tokenizer = tokenizer::Tokenizer;
using Ids = std::vector<std::int32_t>;

BatchSpec signature_of(std::int64_t vocab_size, const TokenTextOptions& options) {
  BatchSpec signature;
  signature.tensors = {{kInput, Dtype::kInt64, {kBatch, kTime}, false},
                       {kTarget, Dtype::kInt64, {kBatch, kTime}, false}};
  for (TensorSpec& port : signature.tensors) {
    port.vocab_size = vocab_size;
    port.max_length = options.max_seq_len;
  }
  signature.find(kTarget)->in_place = options.in_place;
  return signature;
}

/// The tokens of all files, one after the other.
struct Encoded {
  std::vector<std::string> paths;
  std::vector<std::int64_t> starts;  ///< of each file, in `ids`
  std::shared_ptr<const Tokenizer> tokenizer;
  Ids ids;
  std::int64_t bytes = 0;
};

class TokenText final : public Dataset {
 public:
  TokenText(std::shared_ptr<const Encoded> encoded, const TokenTextOptions& options, std::int64_t begin,
            std::int64_t end)
      : signature_(signature_of(encoded->tokenizer->id_limit(), options)),
        encoded_(std::move(encoded)),
        begin_(begin),
        end_(end),
        stride_(options.stride),
        size_((end - begin - options.max_seq_len - 1) / options.stride + 1) {}

  const std::shared_ptr<const Encoded>& encoded() const { return encoded_; }

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
    const std::int64_t shift = signature_.at(kTarget).in_place ? 0 : 1;
    for (const std::int64_t index : indices) {
      RUNNER_ASSERT(index >= 0 && index < size_, "the sampler keeps to the data set");
      const std::int32_t* ids = encoded_->ids.data() + begin_ + index * stride_;
      input = std::copy_n(ids, length, input);
      target = std::copy_n(ids + shift, length, target);
    }
    batch.set(kInput, std::move(input_BT));
    batch.set(kTarget, std::move(target_BT));
  }

  double unigram_entropy() const override {
    std::call_once(counted_, [this] {
      std::vector<std::int64_t> counts(static_cast<std::size_t>(encoded_->tokenizer->id_limit()));
      for (std::int64_t i = begin_; i < end_; ++i) {
        ++counts[static_cast<std::size_t>(encoded_->ids[static_cast<std::size_t>(i)])];
      }
      entropy_ = entropy_of(counts);
    });
    return entropy_;
  }

  std::string describe() const override {
    return counted_large(static_cast<std::int64_t>(encoded_->paths.size()), "file", "files") + ", " +
           runner::core::format_bytes(encoded_->bytes) + ", " + counted_large(end_ - begin_, "token", "tokens") + ", " +
           counted_large(size_, "sample", "samples") + " of " + with_commas(signature_.max_length());
  }

  std::vector<std::string> files() const override {
    std::vector<std::string> all = encoded_->paths;
    all.push_back(encoded_->tokenizer->description().path);
    return all;
  }

  std::vector<Part> parts_of(std::int64_t index) const override {
    const std::int64_t window = begin_ + index * stride_, window_end = window + signature_.max_length();
    std::vector<Part> parts;
    for (std::size_t file = 0; file < encoded_->paths.size(); ++file) {
      const bool is_last = file + 1 == encoded_->paths.size();
      const auto end = is_last ? static_cast<std::int64_t>(encoded_->ids.size()) : encoded_->starts[file + 1];
      const std::int64_t from = std::max(window, encoded_->starts[file]), to = std::min(window_end, end);
      if (from >= to) continue;
      parts.push_back(
          {from - window, to - from, Record{"token", from - encoded_->starts[file] + 1, encoded_->paths[file]}});
    }
    return parts;
  }

  std::shared_ptr<const Tokenizer> tokenizer() const override { return encoded_->tokenizer; }

  std::int64_t memory_bytes() const override {
    return static_cast<std::int64_t>(encoded_->ids.size() * sizeof(std::int32_t));
  }

  std::string decode(std::span<const std::int64_t> ids) const override {
    return encoded_->tokenizer->decode(Ids(ids.begin(), ids.end())).value();
  }

  std::vector<std::int64_t> encode(const std::string& text) const override {
    const auto encoded = encoded_->tokenizer->encode(text, {.add_special_tokens = false});
    if (!encoded) throw runner::core::RunError(encoded.failure().message, encoded.failure().hint);
    return {encoded.value().ids.begin(), encoded.value().ids.end()};
  }

 private:
  BatchSpec signature_;
  std::shared_ptr<const Encoded> encoded_;
  std::int64_t begin_, end_, stride_, size_;
  mutable std::once_flag counted_;
  mutable double entropy_ = 0;
};

/// A file at a time and all threads in it would be of no use: a file is encoded by one thread, several at once.
std::shared_ptr<const Encoded> encode_files(const std::vector<TextFile>& files,
                                            std::shared_ptr<const Tokenizer> tokenizer, const Inputs& inputs) {
  auto all = std::make_shared<Encoded>();
  all->tokenizer = std::move(tokenizer);
  const auto refuse = [&](const runner::core::Failure& failure) {
    inputs.diagnostics.error(location_of(inputs.block, "path"), "data." + inputs.name + ": " + failure.message,
                             failure.hint);
    return nullptr;
  };
  const auto threads = static_cast<std::size_t>(std::max(1, at::get_num_threads()));
  for (std::size_t first = 0; first < files.size(); first += threads) {
    const std::size_t last = std::min(files.size(), first + threads);
    std::vector<std::string> texts;
    for (std::size_t i = first; i < last; ++i) {
      auto text = runner::core::read_file(files[i].path, static_cast<std::int64_t>(Tokenizer::kTextMax));
      if (!text) return refuse(text.failure());
      texts.push_back(std::move(text).value());
    }
    for (std::size_t i = first; i < last; ++i) all->paths.push_back(files[i].path);
    auto encodings = all->tokenizer->encode_batch(texts, {.add_special_tokens = false}, threads);
    if (!encodings) {
      // By itself, the message names no index, but the file can be named.
      for (std::size_t i = first; i < last; ++i) {
        const auto alone = all->tokenizer->encode(texts[i - first], {.add_special_tokens = false});
        if (!alone) return refuse({files[i].path + ": " + alone.failure().message, alone.failure().hint});
      }
      return refuse(encodings.failure());
    }
    for (std::size_t i = first; i < last; ++i) {
      const Ids& ids = encodings.value()[i - first].ids;
      all->starts.push_back(static_cast<std::int64_t>(all->ids.size()));
      all->ids.insert(all->ids.end(), ids.begin(), ids.end());
      all->bytes += static_cast<std::int64_t>(texts[i - first].size());
    }
  }
  return all;
}

/// Those of the training set, when it has the same files.
std::shared_ptr<const Encoded> shared_with_train(const std::vector<TextFile>& files,
                                                 const std::shared_ptr<const Tokenizer>& tokenizer,
                                                 const Inputs& inputs) {
  const auto* train = dynamic_cast<const TokenText*>(inputs.train);
  if (train == nullptr || train->encoded()->tokenizer != tokenizer) return nullptr;
  const bool same =
      std::equal(files.begin(), files.end(), train->encoded()->paths.begin(), train->encoded()->paths.end(),
                 [](const TextFile& file, const std::string& path) { return file.path == path; });
  return same ? train->encoded() : nullptr;
}

}  // namespace

std::shared_ptr<Dataset> make_token_text(const std::vector<TextFile>& files, const TokenTextOptions& options,
                                         std::shared_ptr<const Tokenizer> tokenizer, const Inputs& inputs) {
  if (!fits_training_set(signature_of(tokenizer->id_limit(), options), inputs)) return nullptr;
  const std::int64_t of_train = inputs.train != nullptr ? inputs.train->signature().at(kInput).vocab_size : 0;
  if (of_train > 0 && of_train != tokenizer->id_limit()) {
    inputs.diagnostics.error(location_of(inputs.block, "tokenizer"),
                             "the tokenizer of data." + inputs.name + " has ids below " +
                                 std::to_string(tokenizer->id_limit()) + ", and data.train has ids below " +
                                 std::to_string(of_train),
                             "use one tokenizer: one model reads both");
    return nullptr;
  }
  std::shared_ptr<const Encoded> encoded = shared_with_train(files, tokenizer, inputs);
  if (encoded == nullptr) {
    // At most a token for each byte, of 4 bytes, beside the text itself.
    const auto bytes = static_cast<double>(total_bytes(files));
    if (!fits_in_memory(5.0 * bytes, "path", "use fewer or smaller files, or token files", inputs)) return nullptr;
    encoded = encode_files(files, std::move(tokenizer), inputs);
  }
  if (encoded == nullptr) return nullptr;
  const auto whole = static_cast<std::int64_t>(encoded->ids.size());
  const std::int64_t begin = options.share.begin(whole);
  const std::int64_t end = options.share.end(whole);
  if (end - begin < options.max_seq_len + 1) {
    inputs.diagnostics.error(
        location_of(inputs.block, "max_seq_len"),
        "data." + inputs.name + " has " + counted_large(end - begin, "token", "tokens") +
            ", and a sample takes max_seq_len + 1 = " + with_commas(options.max_seq_len + 1),
        end - begin < 2 ? "use more text"
                        : "use max_seq_len: " + std::to_string(end - begin - 1) + " or less, or use more text");
    return nullptr;
  }
  return std::make_shared<TokenText>(std::move(encoded), options, begin, end);
}

}  // namespace components::data

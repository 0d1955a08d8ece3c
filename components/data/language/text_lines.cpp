#include <ATen/ATen.h>

#include <algorithm>
#include <mutex>

#include "components/data/block_location.h"
#include "components/data/byte_stream.h"
#include "components/data/language/encoded_text.h"
#include "components/data/recipe_tokenizer.h"
#include "components/data/record/record_cache.h"
#include "components/data/record/record_set.h"
#include "components/data/same_task.h"
#include "components/data/text_bytes.h"
#include "components/data/text_files.h"
#include "components/data/text_utils.h"
#include "components/tensor/tensors.h"
#include "generated/data/text_lines.h"
#include "runner/core/error.h"
#include "runner/core/platform/machine.h"
#include "runner/core/text/text.h"
#include "runner/core/units.h"

// B: samples of the batch   T: bytes of the longest one

namespace components::data::text_lines {
namespace {

constexpr std::int64_t kBytes = 256;  ///< the vocabulary

/// Position of a line in the stream, without its end, and in its file.
struct Line {
  std::int64_t at = 0, bytes = 0;
  std::int64_t number = 0;  ///< from 1; empty lines count
  std::size_t file = 0;
};

BatchSpec signature_of(std::int64_t max_seq_len) {
  BatchSpec signature;
  signature.tensors = {{kInput, Dtype::kInt64, {kBatch, kTime}, false},
                       {kTarget, Dtype::kInt64, {kBatch, kTime}, false}};
  for (TensorSpec& port : signature.tensors) {
    port.vocab_size = kBytes;
    port.max_length = max_seq_len;
    port.padded = true;
  }
  signature.find(kTarget)->has_ignored = true;
  return signature;
}

class TextLines final : public Dataset {
 public:
  TextLines(std::unique_ptr<ByteStream> stream, std::vector<Line> lines, const std::vector<TextFile>& files,
            std::int64_t max_seq_len)
      : signature_(signature_of(max_seq_len)), stream_(std::move(stream)), lines_(std::move(lines)) {
    for (const TextFile& file : files) paths_.push_back(file.path);
  }

  const BatchSpec& signature() const override { return signature_; }
  std::int64_t size() const override { return static_cast<std::int64_t>(lines_.size()); }
  std::int64_t length_of(std::int64_t index) const override {
    return std::min(line(index).bytes, signature_.max_length());
  }

  void fetch(std::span<const std::int64_t> indices, TensorMap& batch) const override {
    const auto samples = static_cast<std::int64_t>(indices.size());
    std::int64_t length = 0;
    for (const std::int64_t index : indices) length = std::max(length, length_of(index));
    at::Tensor input_BT = at::empty({samples, length}, at::kLong);
    at::Tensor target_BT = at::empty({samples, length}, at::kLong);
    auto* input = input_BT.mutable_data_ptr<std::int64_t>();
    auto* target = target_BT.mutable_data_ptr<std::int64_t>();
    std::vector<unsigned char> scratch;
    for (const std::int64_t index : indices) {
      const std::int64_t count = length_of(index);
      const bool whole = count == line(index).bytes;
      const unsigned char* bytes = stream_->read(line(index).at, count + (whole ? 0 : 1), scratch);
      std::fill_n(std::copy_n(bytes, count, input), length - count, 0);
      std::copy_n(bytes + 1, count - 1, target);
      target[count - 1] = whole ? '\n' : bytes[count];  // the last line of a file may lack a line end
      std::fill_n(target + count, length - count, kPadTarget);
      input += length;
      target += length;
    }
    batch.set(kInput, std::move(input_BT));
    batch.set(kTarget, std::move(target_BT));
  }

  double unigram_entropy() const override {
    std::call_once(counted_, [this] { entropy_ = entropy_of(stream_->histogram()); });
    return entropy_;
  }

  std::string describe() const override {
    std::int64_t shortest = signature_.max_length(), longest = 0, cut = 0;
    for (std::int64_t i = 0; i < size(); ++i) {
      shortest = std::min(shortest, length_of(i));
      longest = std::max(longest, length_of(i));
      cut += line(i).bytes > signature_.max_length() ? 1 : 0;
    }
    return counted_large(stream_->file_count(), "file", "files") + ", " + runner::core::format_bytes(stream_->size()) +
           ", " + counted_large(size(), "line", "lines") + " of " + with_commas(shortest) + " to " +
           counted_large(longest, "byte", "bytes") + (cut > 0 ? " (" + with_commas(cut) + " cut)" : "");
  }

  std::vector<std::string> files() const override { return stream_->paths(); }

  std::optional<Record> record_of(std::int64_t index) const override {
    return Record{"line", line(index).number, paths_.size() > 1 ? paths_[line(index).file] : ""};
  }

  std::vector<Part> parts_of(std::int64_t index) const override {
    const bool cut = line(index).bytes > signature_.max_length();
    return {{0, length_of(index), Record{"line", line(index).number, paths_[line(index).file]}, cut}};
  }

  Account account() const override {
    Account account{.records = size()};
    for (const Line& one : lines_) account.cut += one.bytes > signature_.max_length() ? 1 : 0;
    return account;
  }

  std::int64_t memory_bytes() const override {
    return stream_->size() + static_cast<std::int64_t>(lines_.size() * sizeof(Line));
  }
  std::string decode(std::span<const std::int64_t> ids) const override { return text_of_bytes(ids); }
  std::vector<std::int64_t> encode(const std::string& text) const override { return bytes_of_text(text); }

 private:
  const Line& line(std::int64_t index) const {
    RUNNER_ASSERT(index >= 0 && index < size(), "the sampler keeps to the data set");
    return lines_[static_cast<std::size_t>(index)];
  }

  BatchSpec signature_;
  std::unique_ptr<ByteStream> stream_;
  std::vector<Line> lines_;
  std::vector<std::string> paths_;
  mutable std::once_flag counted_;
  mutable double entropy_ = 0;
};

/// The lines of one file; the last one ends with the file; `from` is the file's start in the stream.
void add_lines(const ByteStream& stream, std::int64_t from, std::int64_t bytes, std::size_t file,
               std::vector<Line>& lines) {
  std::vector<unsigned char> scratch;
  const unsigned char* begin = stream.read(from, bytes, scratch);
  const unsigned char* const end = begin + bytes;
  std::int64_t number = 0;
  for (const unsigned char* at = begin; at < end;) {
    const unsigned char* const stop = std::find(at, end, '\n');
    ++number;
    const unsigned char* last = stop;
    if (last > at && last[-1] == '\r') --last;  // of a file from Windows
    if (last > at) lines.push_back({from + (at - begin), last - at, number, file});
    at = stop + 1;
  }
}

LongRecord long_record(TooLong word) {
  switch (word) {
    case TooLong::kCut: return LongRecord::kCut;
    case TooLong::kDrop: return LongRecord::kDrop;
    case TooLong::kError: break;
  }
  return LongRecord::kError;
}

std::shared_ptr<Dataset> make_of_tokens(const Config& config, const Inputs& inputs,
                                        std::shared_ptr<const tokenizer::Tokenizer> tokenizer) {
  RecordSetOptions options;
  options.files = find_text_files(config.path, config.exclude, FileKind::kBytes, inputs);
  if (options.files.empty()) return nullptr;
  const auto share = apply_split(config.split, config.split_by == SplitBy::kFiles, "lines", options.files, inputs);
  if (!share) return nullptr;
  options.share = *share;
  if (inputs.labels == LabelKind::kUnmasked) options.labels = inputs.labels;
  options.max_seq_len = config.max_seq_len;
  options.too_long = long_record(config.too_long);
  options.parse = [tokenizer](const std::string& line, std::int64_t /*vocab_size*/) {
    return encoded_text(*tokenizer, line.ends_with('\r') ? line.substr(0, line.size() - 1) : line);
  };
  options.settings = encoding_settings(inputs.block, *tokenizer);
  options.use(std::move(tokenizer));
  return make_record_set(options, inputs);
}

/// False when a line is too long.
bool shorten(std::vector<Line>& lines, const Config& config, const Inputs& inputs) {
  const auto too_long = [&config](const Line& line) { return line.bytes > config.max_seq_len; };
  if (config.too_long == TooLong::kDrop) std::erase_if(lines, too_long);
  if (config.too_long != TooLong::kError) return true;
  const auto count = static_cast<std::int64_t>(std::count_if(lines.begin(), lines.end(), too_long));
  if (count == 0) return true;
  const auto longest =
      std::max_element(lines.begin(), lines.end(), [](const Line& a, const Line& b) { return a.bytes < b.bytes; });
  inputs.diagnostics.error(location_of(inputs.block, "too_long"),
                           counted_large(count, "line", "lines") + " of data." + inputs.name + " " +
                               (count == 1 ? "is" : "are") + " longer than max_seq_len " +
                               std::to_string(config.max_seq_len) + ", the longest has " +
                               counted_large(longest->bytes, "byte", "bytes"),
                           "raise max_seq_len, or use too_long: cut");
  return false;
}

}  // namespace

std::shared_ptr<Dataset> make(const Config& config, const Inputs& inputs) {
  const auto tokenizer = tokenizer_of(config.tokenizer, inputs);
  if (!tokenizer) return nullptr;
  if (*tokenizer != nullptr) return make_of_tokens(config, inputs, *tokenizer);
  if (!fits_training_set(signature_of(config.max_seq_len), inputs)) return nullptr;
  std::vector<TextFile> files = find_text_files(config.path, config.exclude, FileKind::kBytes, inputs);
  if (files.empty()) return nullptr;
  const auto share = apply_split(config.split, config.split_by == SplitBy::kFiles, "lines", files, inputs);
  if (!share) return nullptr;
  const std::int64_t bytes = total_bytes(files);
  if (bytes > runner::core::memory_limit()) {
    inputs.diagnostics.error(location_of(inputs.block, "path"),
                             "data." + inputs.name + " has " + runner::core::format_bytes(bytes) +
                                 ", but this machine has " + runner::core::format_bytes(runner::core::memory_limit()) +
                                 " of memory",
                             "use fewer files, or type: text with streaming: true");
    return nullptr;
  }
  try {
    auto stream = std::make_unique<ByteStream>(files, 0, bytes, true);
    std::vector<Line> lines;
    std::int64_t from = 0;
    for (std::size_t i = 0; i < files.size(); ++i) {
      add_lines(*stream, from, files[i].bytes, i, lines);
      from += files[i].bytes;
    }
    const auto whole = static_cast<std::int64_t>(lines.size());
    if (!takes_lines(*share, whole, inputs)) return nullptr;
    lines.erase(lines.begin() + share->end(whole), lines.end());
    lines.erase(lines.begin(), lines.begin() + share->begin(whole));
    if (!lines.empty() && static_cast<std::int64_t>(lines.size()) < whole) {  // only their text is kept
      const std::int64_t begin = lines.front().at;
      const std::int64_t end = std::min(bytes, lines.back().at + lines.back().bytes + 1);
      stream = std::make_unique<ByteStream>(files, begin, end, true);
      for (Line& line : lines) line.at -= begin;
    }
    if (!shorten(lines, config, inputs)) return nullptr;
    if (lines.empty()) {
      inputs.diagnostics.error(location_of(inputs.block, config.split ? "split" : "path"),
                               "data." + inputs.name + " has no usable line, of " +
                                   counted_large(whole, "line", "lines") + " that are not empty",
                               config.too_long == TooLong::kDrop ? "use too_long: cut, or more text" : "use more text");
      return nullptr;
    }
    return std::make_shared<TextLines>(std::move(stream), std::move(lines), files, config.max_seq_len);
  } catch (const runner::core::RunError& error) {
    inputs.diagnostics.error(location_of(inputs.block, "path"), error.what(), error.hint());
    return nullptr;
  }
}

}  // namespace components::data::text_lines

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "components/tensor/tensor_spec.h"
#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "runner/core/state.h"

namespace components {
class TensorMap;
namespace tokenizer {
class Tokenizer;
}
}  // namespace components

namespace components::data {

/// Where a sample lies in its file.
struct Record {
  const char* unit = "row";  ///< `row` of a table (the header is not counted), `line` of a text
  std::int64_t number = 0;   ///< from 1
  std::string file = {};     ///< "" when the set has one file
};

/// Positions of a sample that come from one record, or from one file.
struct Part {
  std::int64_t begin = 0, length = 0;  ///< of the input, without padding
  std::optional<Record> record = {};   ///< nothing: it is not known
  bool cut = false;                    ///< the record was longer
};

/// What a set made of the records of its files, or of its part of them.
struct Account {
  std::int64_t records = 0;
  std::int64_t cut = 0, dropped = 0;  ///< too long: shortened, or left out
  std::int64_t skipped = 0;           ///< not valid
  std::string reasons = {};           ///< of the skipped ones: the first of each kind, with file and line
};

class Stream;
struct Questions;

/// Where an epoch reads a sample: its place in the order of that epoch.
struct Turn {
  std::int64_t epoch = 0, position = 0;
};

/// The order of a stream.
struct StreamOptions {
  bool shuffle = false;  ///< false: that of the files
  std::uint64_t seed = 0;
};

/// size() of a set that is read as a stream: more than a training reads, and exact as a double.
inline constexpr std::int64_t kEndless = std::int64_t{1} << 52;

/// A named data set: samples by index, the same every time (random access; order is the sampler's). If samples depend
/// on more than the index (random noise, a forward-only source), that is its state.
class Dataset : public runner::core::Stateful {
 public:
  virtual const BatchSpec& signature() const = 0;
  virtual std::int64_t size() const = 0;  ///< samples
  /// Writes the tensors of signature() for these samples into `batch`, in its order. RunError names file and record
  /// when one is bad. May be called from several threads.
  virtual void fetch(std::span<const std::int64_t> indices, TensorMap& batch) const = 0;
  /// The same as an epoch reads them, one after the other from `first` on, for sets that a transform draws something
  /// for in each epoch. By fetch() they are what the first epoch reads when it keeps to the set's order.
  virtual void fetch_at(const Turn& first, std::span<const std::int64_t> indices, TensorMap& batch) const;
  /// The samples one after the other, of a set that is too large for random access: its size() is kEndless, and
  /// fetch() and the other functions that take an index may not be called. Null: samples are read by index.
  virtual std::unique_ptr<Stream> open_stream(const StreamOptions& options) const;
  bool is_stream() const { return size() == kEndless; }
  /// How an epoch is shuffled: 0 permutes all samples; otherwise (streaming) the size of blocks that are permuted, so
  /// that disk reads are sequential.
  virtual std::int64_t shuffle_block() const { return 0; }
  /// Length of a sample, if lengths differ (`signature().padded()`), for batches with little padding. 0 if all are
  /// equal.
  virtual std::int64_t length_of(std::int64_t) const { return 0; }
  /// Units of text or tokens in one sample, for tokens/s and max_tokens; 0 when samples are not token sequences of one
  /// length.
  virtual std::int64_t tokens_per_sample() const { return 0; }
  /// Entropy in nats per token of the data's unigram distribution (no smoothing); NaN if undefined.
  virtual double unigram_entropy() const;
  /// Bytes of samples in memory; with `header_only` those that would be. 0 when they are read from files.
  virtual std::int64_t memory_bytes() const { return 0; }
  /// One line for `plan`: `12 files, 1.1 MB, 8,714 samples of 128 bytes`.
  virtual std::string describe() const = 0;
  /// Text of ids, for sample generation; "" when ids are not text.
  virtual std::string decode(std::span<const std::int64_t> ids) const;
  virtual std::vector<std::int64_t> encode(const std::string& text) const;
  /// A sample of a table in readable form, without its target: its columns in order; empty if it has none.
  virtual std::vector<std::pair<std::string, runner::core::Node>> columns_of(std::int64_t index) const;
  /// The name of a class; its number if it has none.
  virtual std::string class_name(std::int64_t number) const;
  /// The record of the file that a sample was read from; nothing when samples are not records of a file.
  virtual std::optional<Record> record_of(std::int64_t index) const;
  /// Records in the files; more than size() when the set leaves some out.
  virtual std::int64_t records() const { return size(); }
  /// Where the positions of a sample come from, in order; empty when samples are not sequences.
  virtual std::vector<Part> parts_of(std::int64_t index) const;
  /// Of sets of records; elsewhere all are used.
  virtual Account account() const;
  /// What made ids of its texts; null: none, or they were ids already.
  virtual std::shared_ptr<const tokenizer::Tokenizer> tokenizer() const { return nullptr; }
  /// Positions of a sample that `predict` writes the model's outputs of, without padding; 0: it writes none.
  virtual std::int64_t predicted_positions(std::int64_t /*index*/) const { return 0; }
  /// Of questions about contexts, with what their answers are made of; null for other sets.
  virtual const Questions* questions() const { return nullptr; }
  /// Names of the values in a target, in order; empty if they have none.
  virtual std::vector<std::string> target_names() const { return {}; }
  /// The fields of a sample that `Inputs::keep` asked for, as text, by the names for the output.
  virtual std::vector<std::pair<std::string, std::string>> kept_of(std::int64_t index) const;
  /// The files of the samples, each once, as named by the recipe or its glob; empty for synthetic data.
  virtual std::vector<std::string> files() const { return {}; }
};

/// Gives a recipe's tokenizer, read at the first call; null after an error.
using TokenizerSource = std::function<std::shared_ptr<const tokenizer::Tokenizer>()>;
/// Of the recipe's key `tokenizer`; no function when it has none. Both are used as long as the result is.
TokenizerSource tokenizer_source(const std::optional<runner::core::Node>& block,
                                 runner::core::Diagnostics& diagnostics);

/// What the labels of records are to the loss and the model's head.
enum class LabelKind {
  kNone,       ///< records are learnt as they are
  kDesirable,  ///< of a completion: whether it is a desirable one; a pair is two of those
  kClass,      ///< of a text: its class
  kClasses,    ///< of a text: any number of classes
  kValues,     ///< of a text: a number, or several
  kTags,       ///< of each word of a text: its class
  kMasked,     ///< of each id: the one that was masked there, or none
  kUnmasked,   ///< of each id: itself; a transform masks some of them, or cuts them out
  kWritten,    ///< of a text: another one, which a decoder writes, of a length of its own
  kSpans,      ///< of a question about a context: where its answer begins and ends
  kChoices,    ///< of several texts: which of them is right
  kTexts,      ///< none: the head gives each text of a record a vector
  kScores,     ///< the same of two texts, and how alike they are
  kRewards,    ///< none: the head gives each text of a pair a number, and learns which is to have more
};

/// Whether they are ids, each at the place of the input that it is told of.
inline bool are_in_place(LabelKind kind) { return kind == LabelKind::kMasked || kind == LabelKind::kUnmasked; }

/// Whether they are the target of a batch, in place of ids.
inline bool are_targets(LabelKind kind) {
  return kind != LabelKind::kNone && kind != LabelKind::kDesirable && kind != LabelKind::kRewards &&
         kind != LabelKind::kWritten && kind != LabelKind::kTexts && !are_in_place(kind);
}

/// Whether a record holds its target as numbers, which no table makes of names.
inline bool are_numbers(LabelKind kind) { return kind == LabelKind::kSpans || kind == LabelKind::kChoices; }
/// Whether the head gives each text of a record a vector.
inline bool have_vectors(LabelKind kind) { return kind == LabelKind::kTexts || kind == LabelKind::kScores; }

/// How a decoder reads what it is to write: one position later, behind `start`, and `padding` for what is not learnt.
struct DecoderIds {
  std::int32_t start = 0, padding = 0;
};

/// The classes that the model's head tells by its configuration.
struct ModelClasses {
  std::vector<std::string> names = {};  ///< in order, as far as they have any
  std::int64_t count = 0;               ///< 0: its configuration does not say
  bool is_new_head = false;             ///< init_from.exclude leaves a trained one out
};

struct Inputs {
  std::string name;                 ///< `train`, `val`, ...
  const runner::core::Node& block;  ///< for locations in messages
  runner::core::Diagnostics& diagnostics;
  bool header_only =
      false;  ///< `plan`: sizes, columns and shapes, without reading all of the data where that can be avoided
  const Dataset* train =
      nullptr;             ///< training set, already built: source of vocabulary, classes and normalization statistics
  std::uint64_t seed = 0;  ///< the recipe's
  /// The block is that of the training set, and its path names rows to predict: a target is not needed, and not read.
  bool new_rows = false;
  LabelKind labels = LabelKind::kNone;
  DecoderIds decoder = {};  ///< of kWritten
  ModelClasses model_classes = {};
  std::vector<std::string> keep = {};   ///< columns that kept_of() returns
  TokenizerSource tokenizer = nullptr;  ///< no function: the recipe has none
};

/// Null when `diagnostics` got an error.
std::shared_ptr<Dataset> build(const runner::core::Node& block, const Inputs& inputs);

}  // namespace components::data

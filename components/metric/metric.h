#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "components/tensor/judged.h"
#include "components/tensor/tensor_spec.h"
#include "runner/core/diagnostics.h"
#include "runner/core/node.h"

namespace components {
class TensorMap;
}

namespace components::metric {

/// A batch with the model's outputs, and the loss's own sum and count over it.
struct JudgedBatch {
  const TensorMap& tensors;
  double loss_sum = 0.0;
  std::int64_t loss_count = 0;
};

/// Most numbers that the rows of one metric hold, over all processes: 256 MiB.
inline constexpr std::int64_t kRowNumbersMax = std::int64_t{1} << 26;

/// One or several numbers over a data set, accumulated batch by batch as sums, or as rows for what needs all samples at
/// once. How samples are cut into batches and spread over processes does not change what they make.
class Metric {
 public:
  Metric() = default;
  virtual ~Metric() = default;
  Metric(const Metric&) = delete;
  Metric& operator=(const Metric&) = delete;

  /// Of values(), in their order, from the beginning: `accuracy`, reported as `<set>/accuracy`.
  virtual std::vector<std::string> names() const = 0;
  virtual void reset() = 0;
  /// Names of the tensors that update() reads: outputs of the model and tensors of the batch.
  virtual std::vector<std::string> reads() const { return {kOutput, kTarget}; }
  virtual void update(const JudgedBatch& batch) = 0;  ///< without gradients
  /// Whether it compares generated texts, with judge_text(), and no tensors.
  virtual bool judges_texts() const { return false; }
  virtual void judge_text(const std::string& /*told*/, const std::string& /*right*/) {}
  /// Whether judge_answer() compares a text with several, of which the best one counts.
  virtual bool judges_answers() const { return false; }
  virtual void judge_answer(const std::string& /*told*/, std::span<const std::string> /*right*/) {}
  virtual std::vector<double> values() const = 0;  ///< NaN for what is undefined, and before the first update
  virtual std::string why_undefined() const = 0;   ///< when values are NaN: `no target counts`
  virtual bool higher_is_better() const = 0;       ///< of all its values
  /// Whether this is the first call: a run tells once that a metric is undefined.
  bool first_notice() { return !std::exchange(noticed_, true); }

  /// The accumulated state as numbers that add up over parts of a data set: those of several processes are summed, and
  /// restored with set_sums().
  virtual std::vector<double> sums() const { return {}; }
  virtual void set_sums(std::span<const double> /*sums*/) {}

  /// Numbers kept of each sample; 0 for a metric of sums.
  virtual std::int64_t row_width() const { return 0; }
  /// What was kept, row_width() numbers for each sample; those of several processes follow each other by rank, and are
  /// restored with set_rows().
  virtual std::vector<float> rows() const { return {}; }
  virtual void set_rows(std::vector<float> /*rows*/) {}

 private:
  bool noticed_ = false;
};

/// Bytes of UTF-8 of the text that ids spell, without special tokens.
using BytesOf = std::function<std::int64_t(std::span<const std::int64_t> ids)>;

/// Arguments to make a metric: `outputs` of the model, `data`, `block` in the recipe, `diagnostics`; find() and need().
struct Inputs : Judged {
  std::optional<std::int64_t> ignore_index = {};  ///< ignored by the loss and by metrics
  bool of_labels = false;                         ///< the loss compares each output with a label, which is 0 or 1
  std::vector<std::string> class_names = {};      ///< of the targets; their numbers where they have none
  BytesOf bytes_of = {};                          ///< none: ids of the data are no text that is known
};

/// Null when outputs and data do not fit (`diagnostics` says so).
std::shared_ptr<Metric> build(const runner::core::Node& block, const Inputs& inputs);

}  // namespace components::metric

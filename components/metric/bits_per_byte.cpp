// B: rows of a batch

#include <ATen/core/Tensor.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "components/metric/exact_sum.h"
#include "components/metric/metric.h"
#include "components/tensor/preferences.h"
#include "components/tensor/tensors.h"
#include "generated/metric/bits_per_byte.h"  // Config; declares make()

namespace components::metric::bits_per_byte {
namespace {

class BitsPerByte final : public Metric {
 public:
  BitsPerByte(BytesOf bytes_of, std::int64_t ignored) : bytes_of_(std::move(bytes_of)), ignored_(ignored) {}

  std::vector<std::string> names() const override { return {"bits_per_byte"}; }
  std::vector<std::string> reads() const override { return {kTarget}; }
  void reset() override {
    loss_sum_ = {};
    bytes_ = 0;
  }

  void update(const JudgedBatch& batch) override {
    loss_sum_.add(batch.loss_sum);
    const at::Tensor target = batch.tensors.at(kTarget).cpu().contiguous();
    const std::int64_t width = target.size(-1), *value = target.const_data_ptr<std::int64_t>();
    for (std::int64_t row = 0; row < target.numel() / width; ++row) {  // a token may end within a character
      std::vector<std::int64_t> ids;
      for (std::int64_t i = 0; i < width; ++i, ++value) {
        if (*value != ignored_) ids.push_back(*value);
      }
      bytes_ += bytes_of_(ids);
    }
  }

  std::vector<double> values() const override {
    if (bytes_ == 0) return {std::numeric_limits<double>::quiet_NaN()};
    return {loss_sum_.value() / std::log(2.0) / static_cast<double>(bytes_)};
  }
  std::string why_undefined() const override {
    return bytes_ == 0 ? "the targets spell no text" : "the loss is not a number";
  }
  std::vector<double> sums() const override {
    std::vector<double> numbers = {static_cast<double>(bytes_)};
    loss_sum_.write(numbers);
    return numbers;
  }
  void set_sums(std::span<const double> sums) override {
    bytes_ = static_cast<std::int64_t>(sums[0]);
    std::span<const double> rest = sums.subspan(1);
    loss_sum_ = ExactSum::read(rest);
  }
  bool higher_is_better() const override { return false; }

 private:
  BytesOf bytes_of_;
  std::int64_t ignored_;
  ExactSum loss_sum_;
  std::int64_t bytes_ = 0;
};

}  // namespace

std::shared_ptr<Metric> make(const Config&, const Inputs& inputs) {
  const auto refuse = [&inputs](const std::string& what, const std::string& hint) {
    inputs.diagnostics.error(inputs.block.location(), what, hint);
    return nullptr;
  };
  if (inputs.data.find(kRejectedAt) != nullptr) {
    return refuse("bits_per_byte is a metric of texts, but data.train has pairs of chosen and rejected", "remove it");
  }
  if (!inputs.have({kTarget})) return nullptr;
  const TensorSpec& target = *inputs.find(kTarget);
  if (target.vocab_size == 0 || target.shape.size() != 2) {
    return refuse("bits_per_byte needs ids of tokens as target, but the target is " + to_text(target),
                  "use accuracy for classes, or a metric of values");
  }
  if (!inputs.bytes_of) {
    return refuse("bits_per_byte counts the bytes of texts, but nothing says what text the ids of data.train are",
                  "give the recipe the tokenizer of the ids, or use perplexity");
  }
  return std::make_shared<BitsPerByte>(inputs.bytes_of, inputs.ignore_index.value_or(kPadTarget));
}

}  // namespace components::metric::bits_per_byte

#include <ATen/core/Reduction.h>
#include <ATen/ops/mse_loss.h>

#include <limits>
#include <memory>
#include <string>

#include "components/metric/metric.h"
#include "components/tensor/tensors.h"
#include "generated/metric/mse.h"  // Config; declares make()

namespace components::metric::mse {
namespace {

class Mse final : public Metric {
 public:
  const std::string& name() const override { return name_; }
  void reset() override {
    sum_ = 0.0;
    count_ = 0;
  }

  void update(const TensorMap& tensors, double, std::int64_t) override {
    const at::Tensor& target = tensors.at(kTarget);
    sum_ += at::mse_loss(tensors.at(kOutput).to(at::kFloat), target, at::Reduction::Sum).item<double>();
    count_ += target.numel();
  }

  double value() const override {
    if (count_ == 0) return std::numeric_limits<double>::quiet_NaN();
    return sum_ / static_cast<double>(count_);
  }
  std::vector<double> sums() const override { return {sum_, static_cast<double>(count_)}; }
  void set_sums(std::span<const double> sums) override {
    sum_ = sums[0];
    count_ = static_cast<std::int64_t>(sums[1]);
  }
  bool higher_is_better() const override { return false; }

 private:
  std::string name_ = "mse";
  double sum_ = 0.0;
  std::int64_t count_ = 0;
};

}  // namespace

std::shared_ptr<Metric> make(const Config&, const Inputs& inputs) {
  if (!inputs.have({kOutput, kTarget})) return nullptr;
  const TensorSpec& output = *inputs.find(kOutput);
  const TensorSpec& target = *inputs.find(kTarget);
  if (target.dtype != Dtype::kFloat32 || output.shape != target.shape) {
    inputs.diagnostics.error(inputs.block.location(),
                             "mse needs values as target and an output of the same shape, but there are target " +
                                 to_text(target) + " and output " + to_text(output),
                             "use accuracy or perplexity for classes and ids");
    return nullptr;
  }
  return std::make_shared<Mse>();
}

}  // namespace components::metric::mse

#include "runner/distributed/comm_hook.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <utility>

#include "runner/distributed/power_sgd.h"

namespace runner::distributed {
namespace {

constexpr const char* kSite = "gradients";

class AllReduceHook final : public CommHook {
 public:
  explicit AllReduceHook(ProcessGroup& group) : group_(group) {}
  bool averages() const override { return false; }
  void launch(const at::Tensor& flat, const std::vector<at::Tensor>&) override {
    under_way_.push_back(group_.begin_all_reduce(flat, kSite));
  }
  void wait() override {
    for (const auto& pending : under_way_) pending->wait();
    under_way_.clear();
  }

 private:
  ProcessGroup& group_;
  std::vector<std::unique_ptr<Pending>> under_way_;
};

/// Divides before summing, so that a sum overflows no sooner than its terms.
///
/// Source  torch.distributed.algorithms.ddp_comm_hooks.default_hooks, fp16_compress_hook and bf16_compress_hook
class CastHook final : public CommHook {
 public:
  CastHook(ProcessGroup& group, at::ScalarType type) : group_(group), type_(type) {}
  bool averages() const override { return true; }
  void launch(const at::Tensor& flat, const std::vector<at::Tensor>&) override {
    Bucket bucket{flat, flat.to(type_).div_(group_.size()), nullptr};
    bucket.pending = group_.begin_all_reduce(bucket.small, kSite);
    under_way_.push_back(std::move(bucket));
  }
  void wait() override {
    for (Bucket& bucket : under_way_) {
      bucket.pending->wait();
      bucket.flat.copy_(bucket.small);
    }
    under_way_.clear();
  }

 private:
  struct Bucket {
    at::Tensor flat, small;
    std::unique_ptr<Pending> pending;
  };

  ProcessGroup& group_;
  at::ScalarType type_;
  std::vector<Bucket> under_way_;
};

/// Passes a copy of the bucket in a smaller number format to another hook. The copy is packed: the position in it
/// decides the order in which ranks are summed, which is visible with so few digits.
class WrapperHook final : public CommHook {
 public:
  WrapperHook(std::unique_ptr<CommHook> inner, at::ScalarType type) : inner_(std::move(inner)), type_(type) {}
  bool averages() const override { return inner_->averages(); }
  void launch(const at::Tensor&, const std::vector<at::Tensor>& gradients) override {
    std::int64_t numbers = 0;
    for (const at::Tensor& gradient : gradients) numbers += gradient.numel();
    const at::Tensor small = at::empty({numbers}, gradients.front().options().dtype(type_));
    std::vector<at::Tensor> parts;
    std::int64_t begin = 0;
    for (const at::Tensor& gradient : gradients) {
      parts.push_back(small.narrow(0, begin, gradient.numel()).view(gradient.sizes()));
      parts.back().copy_(gradient);
      under_way_.emplace_back(gradient, parts.back());
      begin += gradient.numel();
    }
    inner_->launch(small, parts);
  }
  void wait() override {
    inner_->wait();
    for (const auto& [gradient, part] : under_way_) gradient.copy_(part);
    under_way_.clear();
  }
  void save_state(core::StateWriter& writer) const override { inner_->save_state(writer); }
  void load_state(const core::StateReader& reader) override { inner_->load_state(reader); }

 private:
  std::unique_ptr<CommHook> inner_;
  at::ScalarType type_;
  std::vector<std::pair<at::Tensor, at::Tensor>> under_way_;  // a gradient, and its copy
};

std::unique_ptr<CommHook> make_hook(ProcessGroup& group, const CommHookOptions& options) {
  switch (options.hook) {
    case CommHookOptions::Hook::kNone: break;
    case CommHookOptions::Hook::kFp16: return std::make_unique<CastHook>(group, at::kHalf);
    case CommHookOptions::Hook::kBf16: return std::make_unique<CastHook>(group, at::kBFloat16);
    case CommHookOptions::Hook::kPowerSgd:
    case CommHookOptions::Hook::kBatchedPowerSgd: return make_power_sgd(group, options.power_sgd);
  }
  return std::make_unique<AllReduceHook>(group);
}

}  // namespace

std::unique_ptr<CommHook> make_comm_hook(ProcessGroup& group, const CommHookOptions& options) {
  auto hook = make_hook(group, options);
  const bool wrapped = options.wrapper != CommHookOptions::Wrapper::kNone;
  if (!wrapped || options.hook == CommHookOptions::Hook::kNone) return hook;
  const bool fp16 = options.wrapper == CommHookOptions::Wrapper::kFp16;
  return std::make_unique<WrapperHook>(std::move(hook), fp16 ? at::kHalf : at::kBFloat16);
}

}  // namespace runner::distributed

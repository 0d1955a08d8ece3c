#include "runner/distributed/staged_group.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include <utility>

namespace runner::distributed {
namespace {

class StagedGroup final : public ProcessGroup {
 public:
  explicit StagedGroup(std::unique_ptr<ProcessGroup> group) : group_(std::move(group)) {}

  int rank() const override { return group_->rank(); }
  int size() const override { return group_->size(); }

  void connect_gpus(core::ConnectNccl connect, int gpu) override {
    group_->connect_gpus(connect, gpu);
    takes_all_ = true;
  }

  std::unique_ptr<Pending> begin_all_reduce(const at::Tensor& flat, const char* site, ReduceOp op) override {
    if (passes(flat)) return group_->begin_all_reduce(flat, site, op);
    const at::Tensor staged = flat.cpu();
    return std::make_unique<Staged>(group_->begin_all_reduce(staged, site, op), staged, flat);
  }

  std::vector<at::Tensor> all_gather(const at::Tensor& mine, const char* site) override {
    if (passes(mine)) return group_->all_gather(mine, site);
    std::vector<at::Tensor> all = group_->all_gather(mine.cpu(), site);
    for (at::Tensor& one : all) one = one.to(mine.device());
    return all;
  }

  void broadcast(const at::Tensor& flat, int from, const char* site) override {
    if (passes(flat)) return group_->broadcast(flat, from, site);
    const at::Tensor staged = flat.cpu();
    group_->broadcast(staged, from, site);
    copy_back(staged, flat);
  }

  void verify_collective(const char* operation, const char* site, const std::string& shape) override {
    group_->verify_collective(operation, site, shape);
  }

 private:
  class Staged final : public Pending {
   public:
    Staged(std::unique_ptr<Pending> pending, at::Tensor staged, at::Tensor flat)
        : pending_(std::move(pending)), staged_(std::move(staged)), flat_(std::move(flat)) {}
    void wait() override {
      pending_->wait();
      copy_back(staged_, flat_);
    }

   private:
    std::unique_ptr<Pending> pending_;
    at::Tensor staged_, flat_;
  };

  bool passes(const at::Tensor& tensor) const { return takes_all_ || tensor.is_cpu(); }

  static void copy_back(const at::Tensor& staged, const at::Tensor& flat) {
    const at::NoGradGuard no_grad;
    flat.copy_(staged);
  }

  std::unique_ptr<ProcessGroup> group_;
  bool takes_all_ = false;  ///< tensors of every device
};

}  // namespace

std::unique_ptr<ProcessGroup> stage_on_cpu(std::unique_ptr<ProcessGroup> group) {
  return std::make_unique<StagedGroup>(std::move(group));
}

}  // namespace runner::distributed

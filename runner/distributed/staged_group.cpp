#include "runner/distributed/staged_group.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <utility>

namespace runner::distributed {
namespace {

class StagedGroup final : public ProcessGroup {
 public:
  explicit StagedGroup(std::unique_ptr<ProcessGroup> group, bool takes_all = false)
      : group_(std::move(group)), takes_all_(takes_all) {}

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

  std::unique_ptr<Pending> begin_all_to_all(const at::Tensor& out, const std::vector<std::int64_t>& out_counts,
                                            const at::Tensor& in, const std::vector<std::int64_t>& in_counts,
                                            const char* site) override {
    if (passes(in)) return group_->begin_all_to_all(out, out_counts, in, in_counts, site);
    const at::Tensor staged = at::empty(out.sizes(), out.options().device(at::kCPU));
    const at::Tensor source = in.cpu();
    return std::make_unique<Staged>(group_->begin_all_to_all(staged, out_counts, source, in_counts, site), staged, out,
                                    source);
  }

  std::unique_ptr<Pending> begin_all_gather(const at::Tensor& out, const at::Tensor& mine, const char* site) override {
    if (passes(mine)) return group_->begin_all_gather(out, mine, site);
    const at::Tensor staged = at::empty(out.sizes(), out.options().device(at::kCPU));
    const at::Tensor source = mine.cpu();
    return std::make_unique<Staged>(group_->begin_all_gather(staged, source, site), staged, out, source);
  }

  void send(const at::Tensor& tensor, int to, const char* site) override {
    group_->send(passes(tensor) ? tensor : tensor.cpu(), to, site);
  }

  void receive(const at::Tensor& tensor, int from, const char* site) override {
    if (passes(tensor)) return group_->receive(tensor, from, site);
    const at::Tensor staged = at::empty(tensor.sizes(), tensor.options().device(at::kCPU));
    group_->receive(staged, from, site);
    copy_back(staged, tensor);
  }

  std::unique_ptr<ProcessGroup> part(const std::vector<int>& ranks, const std::string& name) override {
    return std::make_unique<StagedGroup>(group_->part(ranks, name), takes_all_);
  }
  void describe_ranks(const std::vector<std::string>& places) override { group_->describe_ranks(places); }

  void verify_collective(const char* operation, const char* site, const std::string& shape) override {
    group_->verify_collective(operation, site, shape);
  }

 private:
  class Staged final : public Pending {
   public:
    Staged(std::unique_ptr<Pending> pending, at::Tensor staged, at::Tensor flat, at::Tensor source = {})
        : pending_(std::move(pending)),
          staged_(std::move(staged)),
          flat_(std::move(flat)),
          source_(std::move(source)) {}
    void wait() override {
      pending_->wait();
      copy_back(staged_, flat_);
    }

   private:
    std::unique_ptr<Pending> pending_;
    at::Tensor staged_, flat_;
    at::Tensor source_;  // what is sent, if that is not `staged_`
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

#include "tests/support/torch/pretended_nccl.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/maximum.h>

#include <atomic>
#include <cstring>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <stdexcept>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <utility>
#include <vector>

namespace tests::accelerator {
namespace {

using at::Tensor;
using Clock = std::chrono::steady_clock;
using StorePtr = c10::intrusive_ptr<c10d::Store>;
using WorkPtr = c10::intrusive_ptr<c10d::Work>;

using Bytes = std::vector<std::uint8_t>;
using Finish = std::function<void(const std::vector<Bytes>&)>;

std::atomic<std::int64_t> begun{0};

struct Faults {
  std::mutex mutex;
  Clock::time_point held_until;
  std::string error;
};

Faults& faults() {
  static Faults all;
  return all;
}

std::string key_of(const std::string& collective, int rank) { return collective + "/" + std::to_string(rank); }

Bytes bytes_of(const Tensor& tensor) {
  const Tensor values = tensor.detach().cpu().contiguous();
  const auto* begin = static_cast<const std::uint8_t*>(values.const_data_ptr());
  return {begin, begin + values.nbytes()};
}

/// On the CPU.
Tensor tensor_of(const Bytes& bytes, const Tensor& like) {
  Tensor tensor = at::empty(like.sizes(), like.scalar_type());
  if (bytes.size() != tensor.nbytes()) throw std::runtime_error("NCCL error: the ranks differ in the tensor's length");
  std::memcpy(tensor.mutable_data_ptr(), bytes.data(), bytes.size());
  return tensor;
}

class Collective final : public c10d::Work {
 public:
  /// `finish` gets what is under the keys, once it is there.
  Collective(StorePtr store, std::vector<std::string> keys, Finish finish)
      : store_(std::move(store)), keys_(std::move(keys)), finish_(std::move(finish)) {
    Faults& all = faults();
    const std::lock_guard lock(all.mutex);
    held_until_ = all.held_until;
    if (!all.error.empty()) exception_ = std::make_exception_ptr(std::runtime_error(all.error));
  }

  bool isCompleted() override {
    if (is_done_ || exception() != nullptr) return true;
    if (Clock::now() < held_until_ || (!keys_.empty() && !store_->check(keys_))) return false;
    const at::NoGradGuard no_grad;
    std::vector<Bytes> found;
    for (const std::string& key : keys_) found.push_back(store_->get(key));
    finish_(found);
    is_done_ = true;
    return true;
  }

  /// As NCCL's it does not wait for the GPU.
  bool wait(std::chrono::milliseconds /*timeout*/) override { return true; }

 private:
  StorePtr store_;
  std::vector<std::string> keys_;
  Finish finish_;
  Clock::time_point held_until_;
  bool is_done_ = false;
};

class PretendedNccl final : public c10d::Backend {
 public:
  PretendedNccl(StorePtr store, int rank, int size) : Backend(rank, size), store_(std::move(store)) {}

  const std::string getBackendName() const override { return "pretended nccl"; }

  WorkPtr allreduce(std::vector<Tensor>& tensors, const c10d::AllreduceOptions& options) override {
    const Tensor tensor = tensors.front();
    const bool takes_max = options.reduceOp == c10d::ReduceOp::MAX;
    return begin(tensor, [tensor, takes_max](const std::vector<Tensor>& by_rank) {
      Tensor all = by_rank.front();
      for (std::size_t rank = 1; rank < by_rank.size(); ++rank) {
        all = takes_max ? at::maximum(all, by_rank[rank]) : all + by_rank[rank];
      }
      tensor.copy_(all);
    });
  }

  WorkPtr allgather(std::vector<std::vector<Tensor>>& outputs, std::vector<Tensor>& inputs,
                    const c10d::AllgatherOptions& /*options*/) override {
    return begin(inputs.front(), [targets = outputs.front()](const std::vector<Tensor>& by_rank) {
      for (std::size_t rank = 0; rank < by_rank.size(); ++rank) targets[rank].copy_(by_rank[rank]);
    });
  }

  WorkPtr broadcast(std::vector<Tensor>& tensors, const c10d::BroadcastOptions& options) override {
    const Tensor tensor = tensors.front();
    const auto from = static_cast<std::size_t>(options.rootRank);
    return begin(tensor, [tensor, from](const std::vector<Tensor>& by_rank) { tensor.copy_(by_rank[from]); });
  }

  WorkPtr _allgather_base(Tensor& output, Tensor& input, const c10d::AllgatherOptions& /*options*/) override {
    const Tensor target = output.view({getSize(), -1});
    return begin(input, [target](const std::vector<Tensor>& by_rank) {
      for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
        target[static_cast<std::int64_t>(rank)].copy_(by_rank[rank].flatten());
      }
    });
  }

  WorkPtr alltoall_base(Tensor& output, Tensor& input, std::vector<std::int64_t>& output_sizes,
                        std::vector<std::int64_t>& input_sizes, const c10d::AllToAllOptions& /*options*/) override {
    const std::string name = next(input);
    const std::vector<Tensor> from = input.split_with_sizes(input_sizes), to = output.split_with_sizes(output_sizes);
    std::vector<std::string> keys;
    for (int rank = 0; rank < getSize(); ++rank) {
      store_->set(key_of(key_of(name, getRank()), rank), bytes_of(from.at(static_cast<std::size_t>(rank))));
      keys.push_back(key_of(key_of(name, rank), getRank()));
    }
    return c10::make_intrusive<Collective>(store_, std::move(keys), [to](const std::vector<Bytes>& found) {
      for (std::size_t rank = 0; rank < found.size(); ++rank) to[rank].copy_(tensor_of(found[rank], to[rank]));
    });
  }

  WorkPtr send(std::vector<Tensor>& tensors, int to, int /*tag*/) override {
    refuse_cpu(tensors.front());
    ++begun;
    store_->set(message(getRank(), to, sent_[to]++), bytes_of(tensors.front()));
    return c10::make_intrusive<Collective>(store_, std::vector<std::string>(), [](const std::vector<Bytes>&) {});
  }

  WorkPtr recv(std::vector<Tensor>& tensors, int from, int /*tag*/) override {
    const Tensor tensor = tensors.front();
    refuse_cpu(tensor);
    ++begun;
    std::vector<std::string> keys{message(from, getRank(), received_[from]++)};
    return c10::make_intrusive<Collective>(store_, std::move(keys), [tensor](const std::vector<Bytes>& found) {
      tensor.copy_(tensor_of(found.front(), tensor));
    });
  }

 private:
  static void refuse_cpu(const Tensor& tensor) {
    if (tensor.is_cpu()) throw std::runtime_error("NCCL error: a tensor of the CPU");
  }
  static std::string message(int from, int to, std::int64_t number) {
    return "message/" + key_of(key_of(std::to_string(from), to), static_cast<int>(number));
  }
  /// The name of a collective that begins with this tensor.
  std::string next(const Tensor& mine) {
    refuse_cpu(mine);
    ++begun;
    return std::to_string(number_++);
  }
  WorkPtr begin(const Tensor& mine, std::function<void(const std::vector<Tensor>&)> finish) {
    const std::string name = next(mine);
    std::vector<std::string> keys;
    for (int rank = 0; rank < getSize(); ++rank) keys.push_back(key_of(name, rank));
    store_->set(key_of(name, getRank()), bytes_of(mine));
    return c10::make_intrusive<Collective>(store_, std::move(keys),
                                           [mine, finish = std::move(finish)](const std::vector<Bytes>& found) {
                                             std::vector<Tensor> by_rank;
                                             for (const Bytes& bytes : found) by_rank.push_back(tensor_of(bytes, mine));
                                             finish(by_rank);
                                           });
  }

  StorePtr store_;
  std::int64_t number_ = 0;
  std::map<int, std::int64_t> sent_, received_;  // by the other rank
};

}  // namespace

c10d::Backend* connect_nccl(c10d::Store& store, const runner::core::NcclRank& rank) {
  std::vector<std::string> all;
  for (int other = 0; other < rank.size; ++other) all.push_back(key_of("here", other));
  store.set(key_of("here", rank.rank), std::vector<std::uint8_t>{1});
  store.wait(all, rank.timeout);
  return c10::make_intrusive<PretendedNccl>(StorePtr::reclaim_copy(&store), rank.rank, rank.size).release();
}

std::int64_t nccl_collectives() { return begun; }

void hold_nccl(std::chrono::milliseconds time) {
  const std::lock_guard lock(faults().mutex);
  faults().held_until = Clock::now() + time;
}

void fail_nccl(const std::string& error) {
  const std::lock_guard lock(faults().mutex);
  faults().error = error;
}

}  // namespace tests::accelerator

#include "runner/distributed/nccl_backend.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>

#include <catch2/catch.hpp>
#include <latch>
#include <stdexcept>
#include <string>
#include <vector>

#include "components/tensor/device.h"
#include "runner/core/error.h"
#include "runner/distributed/process_group.h"
#include "tests/support/torch/pretended_accelerator.h"
#include "tests/support/torch/pretended_nccl.h"
#include "tests/support/torch/ranks_torch.h"

namespace {

namespace accelerator = tests::accelerator;

using runner::distributed::ProcessGroup;
using runner::distributed::ReduceOp;

constexpr const char* kError =
    "NCCL error in: /pytorch/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:3690, remote process exited or there was "
    "a network error, NCCL version 2.28.9\n"
    "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.\n"
    "Last error:\n"
    "socketProgress: Connection closed by remote peer b<43210>\n";
constexpr const char* kErrorInOneLine =
    "NCCL error: remote process exited or there was a network error, NCCL version 2.28.9: socketProgress: Connection "
    "closed by remote peer b<43210>";

/// The accelerator of a rank, current on its thread.
at::Device device_of(const ProcessGroup& group) {
  const at::Device device(at::kPrivateUse1, static_cast<c10::DeviceIndex>(group.rank()));
  components::use_device(device);
  return device;
}

}  // namespace

TEST_CASE("an error of NCCL is told in one line, with its last words", "[distributed][nccl]") {
  using runner::distributed::nccl_error;
  CHECK(nccl_error(kError) == kErrorInOneLine);
  CHECK(nccl_error("NCCL error: unhandled system error, NCCL version 2.28.9\nncclSystemError: a call failed") ==
        "NCCL error: unhandled system error, NCCL version 2.28.9");
  CHECK(nccl_error("CUDA error: out of memory").empty());
}

TEST_CASE("connected devices exchange tensors, and the CPUs what is theirs", "[.][accelerator]") {
  accelerator::install();
  const int size = GENERATE(1, 2);
  CAPTURE(size);
  const std::int64_t before = accelerator::nccl_collectives();
  std::vector<std::string> wrong(static_cast<std::size_t>(size));
  tests::run_ranks({.size = size, .debug = true}, [&](ProcessGroup& group) {
    std::string& mine = wrong[static_cast<std::size_t>(group.rank())];
    const auto expect = [&mine](const at::Tensor& found, const at::Tensor& expected, const char* what) {
      if (!at::equal(found.cpu(), expected)) mine += what;
    };
    const at::Device device = device_of(group);
    group.connect_gpus(accelerator::connect_nccl, group.rank());
    const at::Tensor ones = at::arange(1000, at::kFloat);
    const at::Tensor sum = (ones * (group.rank() + 1)).to(device), most = at::full({3}, group.rank()).to(device);
    const auto first = group.begin_all_reduce(sum, "sums");
    const auto second = group.begin_all_reduce(most, "maxima", ReduceOp::kMax);
    first->wait();
    second->wait();
    expect(sum, ones * (size * (size + 1) / 2), " sum");
    expect(most, at::full({3}, size - 1), " maximum");
    const std::vector<at::Tensor> rows = group.all_gather(at::full({2}, group.rank()).to(device), "rows");
    for (int rank = 0; rank < size; ++rank) {
      expect(rows[static_cast<std::size_t>(rank)], at::full({2}, rank), " row");
      if (rows[static_cast<std::size_t>(rank)].device() != device) mine += " device";
    }
    const at::Tensor sent = at::full({4}, group.rank()).to(device);
    group.broadcast(sent, size - 1, "weights");
    expect(sent, at::full({4}, size - 1), " broadcast");
    const at::Tensor on_cpu = at::full({2}, 1.0, at::kFloat);
    group.begin_all_reduce(on_cpu, "counts")->wait();
    expect(on_cpu, at::full({2}, static_cast<double>(size), at::kFloat), " sum of the CPU");
    if (group.from_rank_0("word", "words") != "word") mine += " text";
  });
  for (const std::string& text : wrong) CHECK(text.empty());
  CHECK(accelerator::nccl_collectives() - before == 4 * size);
}

TEST_CASE("a rank that stays away from a device's collective is named with the place where it is", "[.][accelerator]") {
  accelerator::install();
  std::latch given_up(1);
  const auto errors = tests::errors_of_ranks({2, 8.0}, [&](ProcessGroup& group) {
    const at::Device device = device_of(group);
    group.connect_gpus(accelerator::connect_nccl, group.rank());
    if (group.rank() == 1) return given_up.wait();
    try {
      group.begin_all_reduce(at::full({3}, 1.0, at::kFloat).to(device), "gradients")->wait();
    } catch (...) {
      given_up.count_down();
      throw;
    }
  });
  CHECK(errors[1].empty());
  CHECK(errors[0] ==
        "rank 0: all_reduce of gradients waited 8.0 s; rank 1 is computing after connecting the GPUs (collective 1)");
}

TEST_CASE("an error of NCCL is that of the collective, which names rank and operation", "[.][accelerator]") {
  accelerator::install();
  accelerator::fail_nccl(kError);
  const auto errors = tests::errors_of_ranks({1}, [&](ProcessGroup& group) {
    const at::Device device = device_of(group);
    group.connect_gpus(accelerator::connect_nccl, group.rank());
    group.begin_all_reduce(at::full({3}, 1.0, at::kFloat).to(device), "gradients")->wait();
  });
  accelerator::fail_nccl("");
  CHECK(errors[0] == std::string("rank 0: all_reduce of gradients did not finish (") + kErrorInOneLine + ")");
}

TEST_CASE("devices that cannot be connected are told", "[distributed][nccl]") {
  const auto errors = tests::errors_of_ranks({1}, [&](ProcessGroup& group) {
    group.connect_gpus(
        [](c10d::Store&, const runner::core::NcclRank&) -> c10d::Backend* { throw std::runtime_error(kError); }, 0);
  });
  CHECK(errors[0] == std::string("rank 0: connecting the GPUs did not finish (") + kErrorInOneLine + ")");
}

#include "runner/distributed/streaming_reducer.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/ones.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <map>

#include "tests/support/torch/ranks_torch.h"

namespace {

using runner::distributed::CommHookOptions;
using runner::distributed::ProcessGroup;
using runner::distributed::StreamingReducer;

}  // namespace

TEST_CASE("a relay hands each gradient on once it is that of all ranks", "[distributed][relay]") {
  const std::int64_t bucket_bytes = GENERATE(1, 1000, 25 << 20);
  CommHookOptions options;
  options.hook = GENERATE(CommHookOptions::Hook::kNone, CommHookOptions::Hook::kBf16);
  CAPTURE(bucket_bytes, static_cast<int>(options.hook));
  constexpr int kRanks = 3;
  std::atomic<int> right = 0;
  tests::run_ranks({kRanks}, [&](ProcessGroup& group) {
    // The frozen and the unused one have no gradient; rank 0 has no samples.
    const std::vector<at::Tensor> parameters = {at::ones({40, 3}).set_requires_grad(true), at::ones({5}),
                                                at::ones({2}).set_requires_grad(true),
                                                at::ones({64, 64}, at::kBFloat16).t().set_requires_grad(true)};
    const auto exchange = make_comm_hook(group, options);
    StreamingReducer reducer(*exchange, parameters, bucket_bytes);
    const double sum = exchange->averages() ? 1.0 : 3.0;
    for (int pass = 1; pass <= 2; ++pass) {
      std::map<std::size_t, at::Tensor> received;
      int times = 0;
      reducer.begin([&](std::size_t parameter, at::Tensor gradient) {
        ++times;
        received[parameter] = gradient.clone();
      });
      for (const std::size_t place : {0U, 3U}) {  // not in the order that buckets set out in
        if (group.rank() == 0) continue;
        at::Tensor gradient = at::full_like(parameters[place], pass * group.rank());
        at::Tensor(parameters[place]).mutable_grad() = gradient;
        reducer.mark_ready(place);
        if (!parameters[place].grad().defined()) ++right;
      }
      const std::vector<bool> used = reducer.finish();
      if (used == std::vector<bool>{true, false, false, true} && times == 2) ++right;
      for (const std::size_t place : {0U, 3U}) {
        if (at::equal(received[place], at::full_like(parameters[place], pass * sum))) ++right;
      }
    }
  });
  CHECK(right == 2 * (2 * 2 + 3 * kRanks));
}

#include "runner/train/experiment/ddp_options.h"

#include "generated/section/accumulation.h"
#include "generated/section/ddp.h"
#include "generated/section/local_sgd.h"
#include "runner/resolve/recipe.h"

namespace runner::train {
namespace {

using distributed::CommHookOptions;
using sections::ddp::CommHook;
using sections::ddp::CommWrapper;

constexpr double kMiB = 1 << 20;

CommHookOptions::Hook hook_of(CommHook hook) {
  switch (hook) {
    case CommHook::kNo: return CommHookOptions::Hook::kNone;
    case CommHook::kFp16: return CommHookOptions::Hook::kFp16;
    case CommHook::kBf16: return CommHookOptions::Hook::kBf16;
    case CommHook::kPowerSgd: return CommHookOptions::Hook::kPowerSgd;
    case CommHook::kBatchedPowerSgd: return CommHookOptions::Hook::kBatchedPowerSgd;
  }
  return CommHookOptions::Hook::kNone;
}

CommHookOptions::Wrapper wrapper_of(CommWrapper wrapper) {
  switch (wrapper) {
    case CommWrapper::kNo: return CommHookOptions::Wrapper::kNone;
    case CommWrapper::kFp16: return CommHookOptions::Wrapper::kFp16;
    case CommWrapper::kBf16: return CommHookOptions::Wrapper::kBf16;
  }
  return CommHookOptions::Wrapper::kNone;
}

}  // namespace

DdpOptions ddp_options(const resolve::Recipe& recipe) {
  const auto& ddp = *recipe.ddp;
  const auto& state = ddp.comm_state_option;
  DdpOptions options;
  options.bucket_bytes = static_cast<std::int64_t>(ddp.bucket_cap_mb * kMiB);
  options.comm_hook.hook = hook_of(ddp.comm_hook);
  options.comm_hook.wrapper = wrapper_of(ddp.comm_wrapper);
  options.comm_hook.power_sgd = {.batched = ddp.comm_hook == CommHook::kBatchedPowerSgd,
                                 .rank = state.matrix_approximation_rank,
                                 .start_iter = state.start_power_sgd_iter,
                                 .min_compression_rate = state.min_compression_rate,
                                 .use_error_feedback = state.use_error_feedback,
                                 .warm_start = state.warm_start,
                                 .epsilon = state.orthogonalization_epsilon,
                                 .seed = static_cast<std::uint32_t>(state.random_seed)};
  options.local_steps = recipe.local_sgd->local_sgd_steps.value_or(0);
  options.sync_each_batch = recipe.accumulation->sync_each_batch.value_or(false);
  options.find_unused_parameters = ddp.find_unused_parameters;
  options.static_graph = ddp.static_graph;
  options.broadcast_buffers = ddp.broadcast_buffers;
  options.check_reduction = ddp.check_reduction;
  return options;
}

}  // namespace runner::train

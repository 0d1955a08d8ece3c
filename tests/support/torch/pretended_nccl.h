#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "runner/core/platform/connect_nccl.h"

/// Takes the place of NCCL between ranks that train on the pretended accelerator. Tensors go through the store at which
/// the ranks meet. As with NCCL a collective is under way when it was begun, and its errors come later.
namespace tests::accelerator {

/// A core::ConnectNccl.
c10d::Backend* connect_nccl(c10d::Store& store, const runner::core::NcclRank& rank);

/// Collectives that any rank of this process has begun over it.
std::int64_t nccl_collectives();
/// A collective that begins from now on is not done before this time is over.
void hold_nccl(std::chrono::milliseconds time);
/// A collective that begins from now on fails with this error; "" takes it back.
void fail_nccl(const std::string& error);

}  // namespace tests::accelerator

#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <string>

namespace c10d {
class Backend;
class Store;
}  // namespace c10d

namespace runner::cuda {

/// Exchanges tensors on GPUs among the processes that meet at `store`; each has chosen its GPU before. Connects in the
/// first collective, which must finish within `timeout`.
c10::intrusive_ptr<c10d::Backend> make_nccl_backend(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                                    std::chrono::milliseconds timeout);

/// `2.28.9`
std::string nccl_version();

}  // namespace runner::cuda

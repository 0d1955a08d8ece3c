#pragma once

#include <cstdint>
#include <memory>

namespace runner::distributed {

/// The rendezvous store of the ranks, hosted by this process as long as this lives.
class StoreHost {
 public:
  virtual ~StoreHost() = default;
  virtual std::uint16_t port() const = 0;
};

/// `listening`: a bound, listening socket; the host takes ownership. RunError on failure.
std::unique_ptr<StoreHost> host_store(int listening, std::uint16_t port);

}  // namespace runner::distributed

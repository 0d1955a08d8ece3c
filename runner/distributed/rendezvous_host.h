#pragma once

#include <cstdint>
#include <memory>

namespace runner::distributed {

/// The store at which ranks meet, hosted by this process for as long as this lives.
class StoreHost {
 public:
  virtual ~StoreHost() = default;
  virtual std::uint16_t port() const = 0;
};

/// `listening`: a socket that is bound and listens; the host takes it over. RunError when it cannot.
std::unique_ptr<StoreHost> host_store(int listening, std::uint16_t port);

}  // namespace runner::distributed

#include "runner/distributed/rendezvous_host.h"

#include <exception>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "runner/core/error.h"

namespace runner::distributed {
namespace {

class TcpStoreHost final : public StoreHost {
 public:
  explicit TcpStoreHost(c10::intrusive_ptr<c10d::TCPStore> store) : store_(std::move(store)) {}
  std::uint16_t port() const override { return store_->getPort(); }

 private:
  c10::intrusive_ptr<c10d::TCPStore> store_;
};

}  // namespace

std::unique_ptr<StoreHost> host_store(int listening, std::uint16_t port) {
  c10d::TCPStoreOptions options;
  options.port = port;
  options.isServer = true;
  options.waitWorkers = false;
  options.masterListenFd = listening;
  try {
    return std::make_unique<TcpStoreHost>(c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options));
  } catch (const std::exception& error) {
    throw core::RunError(std::string("cannot host the rendezvous store: ") + error.what());
  }
}

}  // namespace runner::distributed

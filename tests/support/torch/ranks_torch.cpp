#include "tests/support/torch/ranks_torch.h"

#include <exception>
#include <thread>

#include "runner/core/platform/listening_socket.h"
#include "runner/core/platform/torch_process_setup.h"
#include "runner/distributed/rendezvous_host.h"

namespace tests {
namespace {

using runner::distributed::ProcessGroup;

// As the program does before it loads the engine; here before there is a rank, for ranks are threads of one process.
const bool prepared = (runner::core::prepare_for_torch(), true);

std::vector<std::exception_ptr> end_of_ranks(const RanksOptions& options,
                                             const std::function<void(ProcessGroup&)>& body) {
  runner::core::ListeningSocket socket;
  const std::uint16_t port = socket.port();
  const auto store = runner::distributed::host_store(socket.release(), port);
  std::vector<std::exception_ptr> thrown(static_cast<std::size_t>(options.size));
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < options.size; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        runner::core::RankInfo info;
        info.rank = info.local_rank = rank;
        info.size = info.local_size = options.size;
        info.master_port = port;
        const auto group = runner::distributed::init_process_group(info, {options.timeout_s, options.debug});
        body(*group);
      } catch (...) {
        thrown[static_cast<std::size_t>(rank)] = std::current_exception();
      }
    });
  }
  threads.clear();
  return thrown;
}

}  // namespace

void run_ranks(const RanksOptions& options, const std::function<void(ProcessGroup&)>& body) {
  for (const std::exception_ptr& error : end_of_ranks(options, body)) {
    if (error) std::rethrow_exception(error);
  }
}

std::vector<std::string> errors_of_ranks(const RanksOptions& options, const std::function<void(ProcessGroup&)>& body) {
  std::vector<std::string> texts;
  for (const std::exception_ptr& error : end_of_ranks(options, body)) {
    std::string text;
    try {
      if (error) std::rethrow_exception(error);
    } catch (const std::exception& caught) {
      text = caught.what();
    }
    texts.push_back(text);
  }
  return texts;
}

}  // namespace tests

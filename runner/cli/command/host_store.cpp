#include <memory>

#include "runner/cli/commands.h"
#include "runner/cli/engine_or_fail.h"

namespace runner::cli {

// Internal. A supervisor starts it beside the ranks, so that their rendezvous store outlives each of them.
void add_host_store(Command app, Session& session) {
  struct Socket {
    int descriptor = -1, port = 0;
  };
  auto socket = std::make_shared<Socket>();
  Command command = app.add_subcommand("host-store", "").group("");
  command.add_option("descriptor", socket->descriptor, "").required();
  command.add_option("port", socket->port, "").required();
  command.callback([&session, socket] {
    session.command = [&session, socket] {
      engine::Engine* engine = engine_or_fail(session);
      if (engine != nullptr) engine->host_store(socket->descriptor, static_cast<std::uint16_t>(socket->port));
    };
  });
}

}  // namespace runner::cli

// Ranks that make collectives of different sizes, without debugging: a thread of Gloo throws, and the process says why
// it ends. Each rank is a process of its own: this program, with the hidden test below.

#include "runner/distributed/exit_message.h"

#include <ATen/ops/zeros.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "runner/core/platform/listening_socket.h"
#include "runner/distributed/process_group.h"
#include "runner/distributed/rendezvous_host.h"
#include "tests/support/process/process.h"

namespace {

using tests::Process;

int number(const char* variable) { return std::atoi(std::getenv(variable)); }

std::unique_ptr<Process> start_rank(int rank, int port, const std::string& numbers) {
  const std::vector<std::string> command = {std::filesystem::read_symlink("/proc/self/exe").string(), "[.one_of_two]"};
  return std::make_unique<Process>(
      command, std::map<std::string, std::string>{
                   {"RANK", std::to_string(rank)}, {"MASTER_PORT", std::to_string(port)}, {"NUMBERS", numbers}});
}

}  // namespace

TEST_CASE("a rank whose collective is too short says where it and the others are", "[distributed]") {
  runner::core::ListeningSocket socket;
  const std::uint16_t port = socket.port();
  const auto store = runner::distributed::host_store(socket.release(), port);
  const auto first = start_rank(0, port, "1000"), second = start_rank(1, port, "10");
  const int first_status = first->wait(), second_status = second->wait();
  INFO(first->output() << second->output());
  CHECK(first_status == runner::core::kExitPeerLost);
  CHECK(second_status == runner::core::kExitPeerLost);
  CHECK(second->output().find("error: rank 1 ") != std::string::npos);
  CHECK(second->output().find("all_reduce of weights, float [10] (collective 3), but another rank sends more") !=
        std::string::npos);
  CHECK(second->output().find("rank 0 ") != std::string::npos);  // where it is, or that it does not answer
  CHECK(second->output().find(
            "hint: the ranks call different collectives; set launch.debug: true to compare them before each") !=
        std::string::npos);
}

TEST_CASE("one of two ranks", "[.one_of_two]") {
  runner::core::RankInfo info;
  info.rank = info.local_rank = number("RANK");
  info.size = info.local_size = 2;
  info.master_port = static_cast<std::uint16_t>(number("MASTER_PORT"));
  try {
    const auto group = runner::distributed::init_process_group(info, {60});
    group->all_gather("here", "greetings");
    group->begin_all_reduce(at::zeros({number("NUMBERS")}), "weights")->wait();
    group->begin_all_reduce(at::zeros({1}), "what comes after")->wait();
  } catch (const runner::core::RunError& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    std::fflush(stderr);
    _exit(error.exit_code());
  }
}

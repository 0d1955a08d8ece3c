#include "runner/distributed/process_group.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <latch>
#include <mutex>
#include <regex>

#include "runner/core/error.h"
#include "runner/core/platform/listening_socket.h"
#include "tests/support/torch/ranks_torch.h"

namespace {

using runner::distributed::ProcessGroup;
using tests::errors_of_ranks;
using tests::run_ranks;

// The assertions of Catch2 2 are not for several threads: ranks report, the test judges.
template <typename T>
class PerRank {
 public:
  explicit PerRank(int size) : values_(static_cast<std::size_t>(size)) {}
  void set(const ProcessGroup& group, T value) {
    const std::lock_guard lock(mutex_);
    values_[static_cast<std::size_t>(group.rank())] = std::move(value);
  }
  const std::vector<T>& values() const { return values_; }

 private:
  std::mutex mutex_;
  std::vector<T> values_;
};

}  // namespace

TEST_CASE("a rank with nothing to do leaves only when the others have come in", "[distributed]") {
  for (int meeting = 0; meeting < 20; ++meeting) {
    const std::vector<std::string> errors = errors_of_ranks({4}, [](ProcessGroup&) {});
    CAPTURE(meeting);
    CHECK(errors == std::vector<std::string>(4));
  }
}

TEST_CASE("a port without a store is reported", "[distributed]") {
  const runner::core::ListeningSocket silent;
  runner::core::RankInfo info;
  info.rank = 1;
  info.size = 2;
  info.master_port = silent.port();
  try {
    runner::distributed::init_process_group(info, {.timeout_s = 0.5});
    FAIL("there was no rank to meet");
  } catch (const runner::core::RunError& error) {
    CHECK(error.what() == "rank 1 cannot reach the rendezvous store at 127.0.0.1:" + std::to_string(silent.port()) +
                              ": the listener does not respond");
    CHECK(error.exit_code() == runner::core::kExitPeerLost);
  }
}

TEST_CASE("sums, and what is handed over, are the same on every rank", "[distributed]") {
  const int size = GENERATE(1, 2, 3, 4);
  CAPTURE(size);
  PerRank<std::vector<std::string>> gathered(size);
  PerRank<std::string> told(size);
  PerRank<at::Tensor> sums(size);
  run_ranks({size}, [&](ProcessGroup& group) {
    const at::Tensor first = at::arange(1000, at::kFloat) * (group.rank() + 1);
    const at::Tensor second = at::full({3}, group.rank(), at::kFloat);
    const auto a = group.begin_all_reduce(first, "first");
    const auto b = group.begin_all_reduce(second, "second");
    a->wait();
    b->wait();
    sums.set(group, first);
    gathered.set(group, group.all_gather(std::string(static_cast<std::size_t>(group.rank()), 'x'), "letters"));
    told.set(group, group.from_rank_0("from " + std::to_string(group.rank()), "words"));
  });
  std::vector<std::string> letters;
  for (int rank = 0; rank < size; ++rank) letters.emplace_back(static_cast<std::size_t>(rank), 'x');
  for (int rank = 0; rank < size; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    CHECK(gathered.values()[at] == letters);
    CHECK(told.values()[at] == "from 0");
    CHECK(at::equal(sums.values()[at], at::arange(1000, at::kFloat) * (size * (size + 1) / 2)));
  }
}

TEST_CASE("a rank that exits is named by the ranks that wait for it", "[distributed]") {
  const auto errors = errors_of_ranks({3}, [](ProcessGroup& group) {
    group.all_gather("here", "greetings");
    if (group.rank() == 1) throw runner::core::RunError("rank 1 had enough");
    group.all_gather("still here", "farewells");
  });
  CHECK(errors[1] == "rank 1 had enough");
  for (const std::size_t rank : {0U, 2U}) {
    INFO(errors[rank]);
    const std::string begin = "rank " + std::to_string(rank) + ": all_gather of farewells did not finish: ";
    REQUIRE(errors[rank].starts_with(begin));
    // A rank that a busy machine keeps from answering is named as well.
    CHECK(std::regex_search(errors[rank].substr(begin.size()),
                            std::regex("^ranks? (0, )?1(, 2)? \\(.*does not respond")));
  }
}

TEST_CASE("the error names a missing rank and the collective it is in", "[distributed]") {
  std::latch given_up(1);
  const auto errors = errors_of_ranks({2, 8.0}, [&](ProcessGroup& group) {
    group.all_gather("here", "greetings");
    if (group.rank() == 1) return given_up.wait();  // busy with something else until the other one gave up
    try {
      group.all_gather("still here", "farewells");
    } catch (...) {
      given_up.count_down();
      throw;
    }
  });
  CHECK(errors[1].empty());
  CHECK(errors[0] ==
        "rank 0: all_gather of farewells waited 8.0 s; rank 1 is computing after all_gather of greetings, byte [4] "
        "(collective 2)");
}

TEST_CASE("with debugging the rank whose collective differs is named before it begins", "[distributed]") {
  const auto errors = errors_of_ranks({.size = 3, .debug = true}, [](ProcessGroup& group) {
    const at::Tensor flat = at::full({group.rank() == 2 ? 4 : 3}, 1.0, at::kFloat);
    group.begin_all_reduce(flat, "weights")->wait();
  });
  for (const std::string& error : errors) {
    CHECK(error ==
          "rank 2 differs from the others: rank 0: all_reduce of weights, float [3]; rank 1: all_reduce of weights, "
          "float [3]; rank 2: all_reduce of weights, float [4]");
  }
}

TEST_CASE("a broadcast of another length is refused by its receiver", "[distributed]") {
  const auto errors = errors_of_ranks({2}, [](ProcessGroup& group) {
    group.broadcast(at::full({group.rank() == 0 ? 3 : 4}, 1.0, at::kFloat), 0, "weights");
  });
  CHECK(errors[1] == "rank 1: broadcast of weights: rank 0 sends 12 bytes, but the buffer has 16, float [4]");
}

TEST_CASE("ranks that do not come are named", "[distributed]") {
  runner::core::ListeningSocket free;
  runner::core::RankInfo info;
  info.size = 3;
  info.hosts_store = true;
  info.master_port = 0;
  try {
    runner::distributed::init_process_group(info, {3.0});
    FAIL("no other rank is there");
  } catch (const runner::core::RunError& error) {
    INFO(error.what());
    CHECK(error.exit_code() == runner::core::kExitPeerLost);
    CHECK(std::string(error.what()).starts_with("ranks 1, 2 of 3 did not connect to 127.0.0.1:"));
  }
}

TEST_CASE("each rank gets its part of what the others send", "[distributed]") {
  const int size = GENERATE(1, 2, 3);
  CAPTURE(size);
  PerRank<at::Tensor> received(size);
  // Rank r gets r + 1 numbers of each: 100 times the sender's number, plus their place in what it sends.
  run_ranks({size}, [&](ProcessGroup& group) {
    std::vector<std::int64_t> to_each, of_each;
    std::int64_t sent = 0;
    for (int rank = 0; rank < size; ++rank) {
      to_each.push_back(rank + 1);
      of_each.push_back(group.rank() + 1);
      sent += rank + 1;
    }
    const at::Tensor in = at::arange(sent, at::kFloat) + 100 * group.rank();
    const at::Tensor out = at::full({size * (group.rank() + 1)}, -1, at::kFloat);
    group.begin_all_to_all(out, of_each, in, to_each, "parts")->wait();
    received.set(group, out);
  });
  for (int rank = 0; rank < size; ++rank) {
    const at::Tensor& got = received.values()[static_cast<std::size_t>(rank)];
    for (std::int64_t from = 0; from < size; ++from) {
      const at::Tensor expected = at::arange(rank + 1, at::kFloat) + rank * (rank + 1) / 2 + 100 * from;
      CHECK(at::equal(got.narrow(0, from * (rank + 1), rank + 1), expected));
    }
  }
}

TEST_CASE("all ranks get what each holds, in one piece", "[distributed]") {
  PerRank<at::Tensor> gathered(3);
  run_ranks({3}, [&](ProcessGroup& group) {
    const at::Tensor all = at::full({6}, -1, at::kBFloat16);
    group.begin_all_gather(all, at::full({2}, group.rank(), at::kBFloat16), "pieces")->wait();
    gathered.set(group, all);
  });
  const at::Tensor expected = at::arange(6).div(2, "floor").to(at::kBFloat16);
  for (const at::Tensor& all : gathered.values()) CHECK(at::equal(all, expected));
}

TEST_CASE("two ranks hand a tensor over, and a rank that is lost meanwhile is named", "[distributed]") {
  PerRank<at::Tensor> received(3);
  run_ranks({3}, [&](ProcessGroup& group) {
    const at::Tensor tensor = at::full({2, 3}, group.rank(), at::kDouble);
    if (group.rank() == 2) group.send(tensor, 0, "rows");
    if (group.rank() == 0) group.receive(tensor, 2, "rows");
    received.set(group, tensor);
  });
  CHECK(received.values()[0].sum().item<double>() == 12);

  const std::vector<std::string> errors = errors_of_ranks({2, 0.5}, [](ProcessGroup& group) {
    if (group.rank() == 0) group.receive(at::full({3}, 0, at::kFloat), 1, "rows");
  });
  CAPTURE(errors[0]);
  CHECK(errors[0].starts_with("rank 0: receive from rank 1 of rows "));
}

#include "runner/launch/rank_environment.h"

#include <catch2/catch.hpp>
#include <string>

#include "tests/support/process/variables.h"

namespace {

using runner::core::RankInfo;
using runner::launch::rank_from_environment;
using tests::Variables;

}  // namespace

TEST_CASE("what a starter says about a rank is read back", "[launch]") {
  RankInfo info;
  info.rank = 3;
  info.size = 4;
  info.local_rank = 1;
  info.local_size = 2;
  info.master_addr = "10.0.0.7";
  info.master_port = 29'500;
  const Variables variables(runner::launch::environment_of(info));
  const auto read = rank_from_environment();
  REQUIRE(read.ok());
  REQUIRE(read.value().has_value());
  CHECK(read.value()->info.rank == 3);
  CHECK(read.value()->info.size == 4);
  CHECK(read.value()->info.local_rank == 1);
  CHECK(read.value()->info.local_size == 2);
  CHECK(read.value()->info.master_addr == "10.0.0.7");
  CHECK(read.value()->info.master_port == 29'500);
  CHECK_FALSE(read.value()->info.hosts_store);
}

TEST_CASE("rank 0 hosts the store unless another process does", "[launch]") {
  const Variables::Values first = {
      {"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "here"}, {"MASTER_PORT", "1234"}};
  {
    const Variables variables(first);
    CHECK(rank_from_environment().value()->info.hosts_store);
  }
  auto agent = first;
  agent["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  const Variables variables(agent);
  CHECK_FALSE(rank_from_environment().value()->info.hosts_store);
}

TEST_CASE("a process that was started alone is no rank", "[launch]") {
  for (const Variables::Values& values :
       {Variables::Values{}, {{"MASTER_PORT", "1"}}, {{"RANK", "0"}}, {{"WORLD_SIZE", "1"}}}) {
    const Variables variables(values);
    REQUIRE(rank_from_environment().ok());
    CHECK_FALSE(rank_from_environment().value().has_value());
  }
}

TEST_CASE("ranks other than 0 leave reports to rank 0", "[launch]") {
  for (const auto& [rank, spoken_for] : {std::pair("0", false), std::pair("1", true)}) {
    const Variables variables({{"OMPI_COMM_WORLD_RANK", rank}, {"OMPI_COMM_WORLD_SIZE", "2"}});
    CHECK(runner::launch::another_process_reports() == spoken_for);
  }
  CHECK_FALSE(runner::launch::another_process_reports());
}

TEST_CASE("a variable that is missing or wrong is named", "[launch]") {
  struct Case {
    Variables::Values values;
    const char* message;
  };
  const Case cases[] = {
      {{{"RANK", "0"}, {"WORLD_SIZE", "2"}}, "MASTER_ADDR is not set, but RANK and WORLD_SIZE are"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}},
       "MASTER_PORT is not set, but RANK and WORLD_SIZE are"},
      {{{"RANK", "2"}, {"WORLD_SIZE", "2"}}, "RANK is \"2\" in the environment, but must be an integer from 0 to 1"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "two"}},
       "WORLD_SIZE is \"two\" in the environment, but must be an integer from 1 to 1048576"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "70000"}},
       "MASTER_PORT is \"70000\" in the environment, but must be an integer from 1 to 65535"},
      {{{"RANK", "1"}}, "RANK is \"1\" in the environment, but WORLD_SIZE is not set"},
      {{{"WORLD_SIZE", "2"}}, "WORLD_SIZE is \"2\" in the environment, but RANK is not set"},
      {{{"WORLD_SIZE", "8"}, {"PMI_RANK", "1"}, {"PMI_SIZE", "2"}},
       "WORLD_SIZE is \"8\" in the environment, but mpiexec sets 2"},
      {{{"RANK", "0"}, {"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}, "RANK is \"0\" in the environment, but mpiexec sets 1"},
  };
  for (const Case& c : cases) {
    const Variables variables(c.values);
    const auto read = rank_from_environment();
    REQUIRE_FALSE(read.ok());
    CHECK(read.failure().message == c.message);
    CHECK(read.failure().exit_code == runner::core::kExitUsage);
  }
}

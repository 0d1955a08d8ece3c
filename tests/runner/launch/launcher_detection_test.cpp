#include "runner/launch/launcher_detection.h"

#include <catch2/catch.hpp>
#include <string>

#include "runner/launch/slurm_script.h"
#include "tests/support/process/variables.h"

namespace {

using runner::launch::rank_of_launcher;
using runner::launch::RendezvousOverride;
using tests::Variables;
using Values = Variables::Values;

const Values kSlurm = {{"SLURM_STEP_ID", "0"},        {"SLURM_PROCID", "2"},
                       {"SLURM_STEP_NUM_TASKS", "3"}, {"SLURM_LOCALID", "0"},
                       {"SLURM_JOB_ID", "77"},        {"SLURM_STEP_TASKS_PER_NODE", "2,1"},
                       {"SLURM_NODEID", "1"},         {"SLURM_STEP_NODELIST", "gpu[03-04]"}};
const Values kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "0"},
                         {"OMPI_COMM_WORLD_SIZE", "2"},
                         {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                         {"PMIX_NAMESPACE", "1234"}};

}  // namespace

TEST_CASE("a step of Slurm over two nodes meets at the first of them", "[launch]") {
  const Variables variables(kSlurm);
  const auto started = rank_of_launcher({}).value();
  REQUIRE(started.has_value());
  CHECK(started->launcher == "srun");
  CHECK(started->info.rank == 2);
  CHECK(started->info.size == 3);
  CHECK(started->info.local_rank == 0);
  CHECK(started->info.local_size == 1);
  CHECK(started->info.master_addr == "gpu03");
  CHECK(started->info.master_port >= 20'000);
  CHECK(started->info.master_port < 30'000);
  CHECK_FALSE(started->info.hosts_store);
  CHECK(rank_of_launcher({"10.0.0.1", 1234}).value()->info.master_addr == "10.0.0.1");
  CHECK(rank_of_launcher({"10.0.0.1", 1234}).value()->info.master_port == 1234);
}

TEST_CASE("what srun says of a rank is missing or makes no sense", "[launch]") {
  struct Case {
    const char *name, *value, *message;
  };
  const Case cases[] = {
      {"SLURM_PROCID", "", "SLURM_PROCID is not set in the environment"},
      {"SLURM_PROCID", "3", "SLURM_PROCID is \"3\" in the environment, but must be an integer from 0 to 2"},
      {"SLURM_STEP_TASKS_PER_NODE", "x,x",
       "SLURM_STEP_TASKS_PER_NODE is \"x,x\" in the environment, which does not match 3 processes"},
      {"SLURM_STEP_TASKS_PER_NODE", "9(x2)",
       "SLURM_STEP_TASKS_PER_NODE is \"9(x2)\" in the environment, which does not match 3 processes"},
  };
  for (const Case& c : cases) {
    Values values = kSlurm;
    values.at(c.name) = c.value;
    const Variables variables(values);
    const auto started = rank_of_launcher({});
    REQUIRE_FALSE(started.ok());
    CHECK(started.failure().message == c.message);
    CHECK(started.failure().exit_code == runner::core::kExitUsage);
  }
}

TEST_CASE("processes of Open MPI on one host meet there", "[launch]") {
  const Variables variables(kOpenMpi);
  const auto started = rank_of_launcher({}).value();
  REQUIRE(started.has_value());
  CHECK(started->launcher == "mpirun");
  CHECK(started->info.master_addr == "127.0.0.1");
  CHECK(started->info.hosts_store);
}

TEST_CASE("several hosts under mpirun need the address of rank 0", "[launch]") {
  Values values = kOpenMpi;
  values.at("OMPI_COMM_WORLD_LOCAL_SIZE").front() = '1';
  const Variables variables(values);
  const auto started = rank_of_launcher({});
  REQUIRE_FALSE(started.ok());
  CHECK(started.failure().message == "mpirun started processes on several machines without the address of rank 0");
  CHECK(rank_of_launcher({"10.0.0.1", std::nullopt}).value()->info.master_addr == "10.0.0.1");
}

TEST_CASE("the words of PMI, one process alone, and a batch script", "[launch]") {
  {
    const Variables variables({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}});
    CHECK(rank_of_launcher({}).value()->launcher == "mpiexec");
    CHECK(rank_of_launcher({}).value()->info.master_port == 29'500);
  }
  for (const Values& values : {Values{{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}},
                               Values{{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "4"}}, Values{}}) {
    const Variables variables(values);
    CHECK_FALSE(rank_of_launcher({}).value().has_value());
    CHECK_FALSE(runner::launch::size_from_launcher().has_value());
  }
}

TEST_CASE("lists as Slurm writes them", "[launch]") {
  CHECK(runner::launch::first_host("login1") == "login1");
  CHECK(runner::launch::first_host("a,b") == "a");
  CHECK(runner::launch::first_host("node[07-09,12],login1") == "node07");
  CHECK(runner::launch::first_host("node[3,5]-ib,x") == "node3-ib");
  CHECK(runner::launch::tasks_of_node("2(x3),1", 0) == 2);
  CHECK(runner::launch::tasks_of_node("2(x3),1", 2) == 2);
  CHECK(runner::launch::tasks_of_node("2(x3),1", 3) == 1);
  CHECK_FALSE(runner::launch::tasks_of_node("2(x3),1", 4).has_value());
}

TEST_CASE("words for a shell", "[launch]") {
  CHECK(runner::launch::shell_line({"roux", "run", "a b.yaml", "it's", ""}) == "roux run 'a b.yaml' 'it'\\''s' ''");
}

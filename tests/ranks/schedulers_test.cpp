// Programs that start processes by themselves: a real mpirun, and a real Slurm with one node, which is this machine.

#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <memory>

#include "runner/core/clock.h"
#include "runner/core/platform/machine.h"
#include "runner/store/run_reader.h"
#include "tests/support/process/equal_checkpoints.h"
#include "tests/support/process/postgres.h"
#include "tests/support/process/rank_processes.h"
#include "tests/support/process/sweep_trials.h"
#include "tests/support/process/test_run.h"
#include "tests/support/skip.h"

namespace {

using tests::Process;
using tests::TestRun;

constexpr const char* kRecipe = R"(
run_name: queued
seed: 3
model: {type: mlp, hidden: [16], dropout: 0.1}
data: {train: {type: synthetic, task: regression, num_samples: 64}}
loss: mse
optimizer: {type: adam, lr: 1.0e-2}
training: {max_steps: 10, micro_batch_size: 2, global_batch_size: 8}
launch: {num_cpu_threads_per_process: 1}
)";

// The first life of a job has no end of its own; the second one finds that there is nothing left to do.
constexpr const char* kEndless = R"(
run_name: queued
seed: 3
model: {type: mlp, hidden: [16]}
data: {train: {type: synthetic, task: regression, num_samples: 64}}
loss: mse
optimizer: {type: adam, lr: 1.0e-2}
lr_scheduler: {type: constant}
training: {max_steps: "${env:SLURM_RESTART_COUNT:-1000000000}", micro_batch_size: 2, global_batch_size: 8}
logging_steps: 100000
launch: {num_processes: 2, num_cpu_threads_per_process: 1, save_margin: 55s}
)";

void need(const std::vector<std::string>& programs, const char* package) {
  for (const std::string& program : programs) {
    if (access(program.c_str(), X_OK) != 0) tests::skip(program + " is not installed (" + package + ")");
  }
}

/// A cluster of this machine, with everything it keeps in a folder of its own; ended with the object.
class Slurm {
 public:
  Slurm() {
    const std::string host = runner::core::host_name(), user = output({"/usr/bin/id", "-un"});
    for (const char* folder : {"state", "spool"}) std::filesystem::create_directory(dir_ / folder);
    std::ofstream(dir_ / "munge.key") << std::string(1024, 'k');
    std::filesystem::permissions(dir_ / "munge.key", std::filesystem::perms::owner_read);
    const std::string controller = std::to_string(tests::unused_port()), node = std::to_string(tests::unused_port());
    std::ofstream(conf())
        << "ClusterName=roux\nSlurmctldHost=" << host << "(127.0.0.1)\nSlurmctldPort=" << controller
        << "\nSlurmdPort=" << node << "\nSlurmUser=" << user << "\nSlurmdUser=" << user
        << "\nAuthType=auth/munge\nAuthInfo=socket=" << dir_ / "munge.sock"
        << ",cred_expire=5"  // a job that is queued again rests as long: two minutes by default
        << "\nMpiDefault=none\nProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\n"
           "JobAcctGatherType=jobacct_gather/none\nAccountingStorageType=accounting_storage/none\n"
           "SelectType=select/cons_tres\nSelectTypeParameters=CR_Core\nSlurmdParameters=config_overrides\n"
           "SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0\nStateSaveLocation="
        << dir_ / "state"
        << "\nSlurmdSpoolDir=" << dir_ / "spool"
        << "\nSlurmctldPidFile=" << dir_ / "controller.pid"
        << "\nSlurmdPidFile=" << dir_ / "node.pid"
        << "\nNodeName=" << host << " NodeAddr=127.0.0.1 CPUs=4 State=UNKNOWN\nPartitionName=main Nodes=" << host
        << " Default=YES MaxTime=INFINITE State=UP\n";
    munge_ = std::make_unique<Process>(
        std::vector<std::string>{"/usr/sbin/munged", "-F", "-f", "-S", dir_ / "munge.sock",
                                 "--key-file=" + (dir_ / "munge.key"), "--pid-file=" + (dir_ / "munge.pid"),
                                 "--seed-file=" + (dir_ / "munge.seed"), "--log-file=" + (dir_ / "munge.log")});
    controller_ = std::make_unique<Process>(std::vector<std::string>{"/usr/sbin/slurmctld", "-D"}, environment());
    node_ = std::make_unique<Process>(std::vector<std::string>{"/usr/sbin/slurmd", "-D"}, environment());
  }
  ~Slurm() { Process({"/usr/bin/scancel", "--full", "--user", output({"/usr/bin/id", "-un"})}, environment()).wait(); }
  Slurm(const Slurm&) = delete;
  Slurm& operator=(const Slurm&) = delete;

  std::map<std::string, std::string> environment() const { return {{"SLURM_CONF", conf()}, {"OMP_NUM_THREADS", "1"}}; }
  Process& controller() { return *controller_; }

 private:
  static std::string output(const std::vector<std::string>& command) {
    Process process(command);
    process.wait();
    return process.output().substr(0, process.output().find('\n'));
  }
  std::string conf() const { return dir_ / "slurm.conf"; }

  tests::TempDir dir_;
  std::unique_ptr<Process> munge_, controller_, node_;
};

const std::vector<std::string> kSlurmPrograms = {"/usr/sbin/slurmctld", "/usr/sbin/slurmd", "/usr/sbin/munged",
                                                 "/usr/bin/srun", "/usr/bin/sbatch"};
constexpr const char* kSlurmPackages = "slurmctld slurmd slurm-client munge";

}  // namespace

TEST_CASE("mpirun's processes are the ranks", "[ranks][schedulers][mpi]") {
  need({"/usr/bin/mpirun"}, "openmpi-bin");
  const TestRun ours(kRecipe), theirs(kRecipe);
  REQUIRE(ours.run({"launch.num_processes=2"}).status == 0);
  Process process({"/usr/bin/mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", tests::roux_program(), "run",
                   "recipe.yaml"},
                  TestRun::environment(), theirs.path().string());
  const int status = process.wait();
  INFO(process.output());
  CHECK(status == 0);
  tests::check_equal_checkpoints(ours, theirs, "step-000010", tests::tensors_of_ranks(2));
}

TEST_CASE("what concerns all of mpirun's processes is said by the first one", "[ranks][schedulers][mpi]") {
  need({"/usr/bin/mpirun"}, "openmpi-bin");
  const TestRun test(kRecipe);
  Process process({"/usr/bin/mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "3", tests::roux_program(), "run",
                   "recipe.yaml"},
                  TestRun::environment(), test.path().string());
  const int status = process.wait();
  const std::string& said = process.output();
  INFO(said);
  CHECK(status == 0);
  for (const char* text : {"run runs/", "max_steps 10: "}) {
    const std::size_t at = said.find(text);
    CHECK(at != std::string::npos);
    CHECK(said.find(text, at + 1) == std::string::npos);
  }
}

TEST_CASE("srun's processes are the ranks", "[ranks][schedulers][slurm]") {
  need(kSlurmPrograms, kSlurmPackages);
  const Slurm slurm;
  const TestRun ours(kRecipe), theirs(kRecipe);
  REQUIRE(ours.run({"launch.num_processes=2"}).status == 0);
  Process process({"/usr/bin/srun", "-n", "2", tests::roux_program(), "run", "recipe.yaml"}, slurm.environment(),
                  theirs.path().string());
  const int status = process.wait();
  INFO(process.output());
  CHECK(status == 0);
  tests::check_equal_checkpoints(ours, theirs, "step-000010", tests::tensors_of_ranks(2));
}

TEST_CASE("a batch job saves before its time is up, queues again and completes", "[ranks][schedulers][slurm]") {
  need(kSlurmPrograms, kSlurmPackages);
  Slurm slurm;
  const TestRun test(kEndless);
  Process emit({"/bin/sh", "-c", tests::roux_program() + " launch --emit slurm recipe.yaml > job.sh"}, {},
               test.path().string());
  REQUIRE(emit.wait() == 0);
  // A minute is the least that Slurm grants; it warns 55 s before, or when it next looks.
  Process job({"/usr/bin/sbatch", "--time=1", "--output=job.log", "job.sh"}, slurm.environment(), test.path().string());
  REQUIRE(job.wait() == 0);
  Process& controller = slurm.controller();
  REQUIRE(controller.wait_for(" JobId=1 NodeList="));  // it starts
  REQUIRE(controller.wait_for("Requeuing JobId=1\n"));
  const std::string done = "_job_complete: JobId=1 WEXITSTATUS ";
  REQUIRE(controller.wait_for(done));
  REQUIRE(controller.wait_for("\n"));
  const std::string& said = controller.output();
  const std::string status = said.substr(said.rfind(done) + done.size(), 2);
  std::ostringstream log;
  log << std::ifstream(test.path() / "job.log").rdbuf();
  INFO(log.str());
  CHECK(status == "0\n");
  CHECK(log.str().find("SIGUSR1: saving, then exiting") != std::string::npos);
  CHECK(log.str().find("resuming runs/queued-") != std::string::npos);
  const auto runs = runner::store::list_runs((test.path() / "runs").string(), runner::core::system_clock());
  REQUIRE(runs.size() == 1);
  CHECK(runs.front().status == runner::store::RunStatus::kFinished);
}

TEST_CASE("an array of jobs works on one sweep, and each trial has one of them",
          "[ranks][schedulers][slurm][postgres]") {
  need(kSlurmPrograms, kSlurmPackages);
  tests::Postgres server;
  constexpr const char* kSwept = R"(
run_name: array
seed: 3
model: {type: mlp, hidden: [8]}
data: {train: {type: synthetic, task: regression, num_samples: 64}, val: {type: synthetic, task: regression, num_samples: 64}}
loss: mse
optimizer: {type: adam, lr: 1.0e-2}
training: {max_steps: 10, micro_batch_size: 32}
launch: {num_cpu_threads_per_process: 1}
sweep:
  n_trials: 12
  sampler: {type: random, seed: 5}
  parameters: {optimizer.lr: {distribution: log_uniform, min: 1.0e-4, max: 1.0e-1}}
)";
  const TestRun calm(kSwept);
  REQUIRE(calm.roux({"sweep", "run", "recipe.yaml"}).status == 0);
  const TestRun test(kSwept + ("  store: " + server.address() + "\n"));
  Process begun({tests::roux_program(), "sweep", "run", "recipe.yaml"}, TestRun::environment(), test.path().string());
  REQUIRE(begun.wait_for("trial 0 "));
  begun.send(SIGINT);
  REQUIRE(begun.wait() == 75);
  const Slurm slurm;
  Process array({"/usr/bin/sbatch", "--wait", "--array=0-3", "--output=worker-%a.log",
                 "--wrap=exec " + tests::roux_program() + " sweep work '" + server.address() + "'"},
                slurm.environment(), test.path().string());
  const int status = array.wait();
  std::ostringstream logs;
  for (int i = 0; i < 4; ++i) logs << std::ifstream(test.path() / ("worker-" + std::to_string(i) + ".log")).rdbuf();
  INFO(array.output() << logs.str());
  CHECK(status == 0);
  tests::check_nothing_is_lost_or_doubled(test, tests::trials_of(calm));
}

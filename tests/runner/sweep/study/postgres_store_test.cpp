#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "runner/core/error.h"
#include "runner/sweep/study/postgres_store.h"
#include "runner/sweep/study/study.h"
#include "tests/support/process/postgres.h"
#include "tests/support/temp_dir.h"

using runner::sweep::PostgresStore;
using runner::sweep::Study;
using runner::sweep::StudyInfo;
using runner::sweep::StudyStore;
using runner::sweep::Trial;
using runner::sweep::TrialEnd;
using runner::sweep::TrialState;
using runner::sweep::Variant;

namespace {

constexpr const char* kName = "tiny's-0d8xhm4tq0a";

StudyInfo info(const std::string& address, std::int64_t lease_ms) {
  StudyInfo info;
  info.name = kName;
  info.recipe_json = "{}";
  info.store = address;
  info.lease_ms = lease_ms;
  return info;
}

Study::Demand demand(Study& study) {
  Study::Demand demand;
  demand.now_ms = study.now_ms();
  demand.variants_max = 100;
  demand.propose = [](const std::vector<Variant>& before, const std::vector<Trial>&) -> std::optional<Variant> {
    const auto number = static_cast<std::int64_t>(before.size());
    return Variant{number, {0.1 * static_cast<double>(number), std::numeric_limits<double>::quiet_NaN()}, "x"};
  };
  return demand;
}

TrialEnd complete(double value) {
  TrialEnd end;
  end.value = value;
  end.step = 20;
  end.run = "run";
  end.curve = {{10, std::numeric_limits<double>::quiet_NaN()}, {20, value}};
  return end;
}

/// Workers on two machines.
struct Two {
  Two(const std::string& address, std::int64_t lease_ms) {
    one = Study::create(here.path(), info(address, lease_ms)).value();
    runner::sweep::link_study(there.path(), address, kName).value();
    two = Study::open(there.path()).value();
    for (Study* study : {one.get(), two.get()}) {
      study->set_outage_handler([this](const StudyStore::Outage& outage) {
        attempts = outage.attempts;
        return outage.attempts < 10;
      });
      study->add_worker(study->now_ms());
    }
  }
  tests::TempDir here, there;
  std::unique_ptr<Study> one, two;
  int attempts = -1;
};

}  // namespace

TEST_CASE("PostgreSQL keeps a study for workers on several machines", "[sweep][postgres]") {
  tests::Postgres server;
  constexpr std::int64_t kLong = 600'000;
  SECTION("each trial has one worker, and what became of it is kept to the last bit") {
    Two workers(server.address(), kLong);
    CHECK(workers.one->claim(demand(*workers.one))->number == 0);
    CHECK(workers.two->claim(demand(*workers.two))->number == 1);
    CHECK(workers.one->end(0, complete(0.1 + 0.2), 9));
    const Trial& trial = workers.two->trials()[0];
    CHECK(trial.state == TrialState::kComplete);
    CHECK(trial.value == 0.1 + 0.2);
    CHECK(workers.two->variants()[1].point[0] == 0.1);
    CHECK(std::isnan(workers.two->variants()[1].point[1]));
    REQUIRE(workers.two->curve(0).size() == 2);
    CHECK(std::isnan(workers.two->curve(0)[0].value));
    CHECK(PostgresStore::names(server.address()) == std::vector<std::string>{kName});
    CHECK_THROWS_WITH(Study::create(workers.here.path(), info(server.address(), kLong)).value(),
                      Catch::Contains("already exists"));
    workers.two->requeue_trials();
    CHECK(workers.two->trials()[0].state == TrialState::kComplete);
    CHECK_FALSE(workers.two->running().empty());
  }
  SECTION("another user's is not in the way of one's own") {
    const Two workers(server.address(), kLong);
    server.ask("CREATE ROLE other LOGIN");
    std::string address = server.address();
    address.replace(address.find("user=postgres"), 13, "user=other");
    CHECK(PostgresStore::names(address).empty());
    const tests::TempDir folder;
    runner::sweep::link_study(folder.path(), address, kName).value();
    CHECK_THROWS_WITH(Study::open(folder.path()).value(), Catch::Contains(" is another user's"));
  }
  SECTION("what is lost with the connection is found again") {
    Two workers(server.address(), kLong);
    CHECK(workers.one->claim(demand(*workers.one))->number == 0);
    server.cut_connections();
    CHECK(workers.one->end(0, complete(1), 9));
    CHECK(workers.attempts == 0);
    server.crash_and_restart();
    CHECK(workers.one->claim(demand(*workers.one))->number == 1);
    auto cut = demand(*workers.two);
    int asked = 0;
    cut.propose = [&, propose = cut.propose](const std::vector<Variant>& before, const std::vector<Trial>& trials) {
      if (++asked == 1) server.cut_connections();
      return propose(before, trials);
    };
    CHECK(workers.two->claim(cut)->number == 2);
    CHECK(asked == 2);
    CHECK(workers.one->trials()[0].value == 1.0);
    CHECK(workers.one->heartbeat());
  }
  SECTION("a trial that was given without the worker's hearing of it is given once more") {
    Two workers(server.address(), kLong);
    CHECK(workers.one->claim(demand(*workers.one))->number == 0);
    // As it stands where the answer to the COMMIT never came.
    server.ask(
        "SET search_path TO roux_0d8xhm4tq0a; UPDATE changes SET number = number + 1; "
        "INSERT INTO variants VALUES(1, 'x', -1, 0); "
        "INSERT INTO trials(number, variant, replicate, state, worker, claims, changed) "
        "SELECT 1, 1, 0, 'running', 1, 1, number FROM changes");
    CHECK(workers.one->claim(demand(*workers.one))->number == 1);
    CHECK(workers.one->end(1, complete(1), 9));
  }
  SECTION("a worker that is not heard of is dead, and cannot end what others have") {
    Two workers(server.address(), 1);  // heard of a millisecond ago
    REQUIRE(workers.one->claim(demand(*workers.one))->number == 0);
    while (workers.two->trials()[0].state == TrialState::kRunning) workers.two->requeue_trials();
    CHECK_FALSE(workers.one->heartbeat());
    CHECK_FALSE(workers.one->end(0, complete(0.5), 9));
    REQUIRE(workers.two->claim(demand(*workers.two))->number == 0);
    CHECK_FALSE(workers.one->end(0, complete(0.5), 9));
    CHECK(workers.two->end(0, complete(0.25), 9));
    CHECK(workers.one->trials()[0].value == 0.25);
  }
  SECTION("workers of other machines are known, until they leave or are not heard of") {
    Two workers(server.address(), kLong);
    const auto third = Study::open(workers.there.path()).value();
    CHECK(third->has_workers());
    workers.one->unregister_worker();
    CHECK(third->has_workers());
    workers.two->unregister_worker();
    CHECK_FALSE(third->has_workers());
  }
  SECTION("a resume may change when a worker is taken for dead, for all of them") {
    Two workers(server.address(), 1);
    REQUIRE(workers.one->claim(demand(*workers.one))->number == 0);
    workers.one->set_recipe("{}", kLong);
    CHECK(workers.two->heartbeat());
    workers.two->requeue_trials();
    CHECK(workers.two->trials()[0].state == TrialState::kRunning);
    CHECK(Study::open(workers.there.path()).value()->info().lease_ms == kLong);
  }
  SECTION("a statement that collides is done once more") {
    Two workers(server.address(), kLong);
    const std::string schema = "SET search_path TO roux_0d8xhm4tq0a; ";
    // At the first heartbeat the server finds two conflicting transactions.
    server.ask(schema +
               "CREATE SEQUENCE asked; CREATE FUNCTION collide() RETURNS trigger LANGUAGE plpgsql AS "
               "$$ BEGIN IF nextval('asked') = 1 THEN RAISE SQLSTATE '40001'; END IF; RETURN NEW; END $$; "
               "CREATE TRIGGER collide BEFORE UPDATE ON workers FOR EACH ROW EXECUTE FUNCTION collide()");
    CHECK(workers.one->heartbeat());
    CHECK(server.ask(schema + "SELECT last_value FROM asked").find('2') != std::string::npos);
  }
  SECTION("no wait for a server that is not to be waited for") {
    Two workers(server.address(), kLong);
    workers.one->set_outage_handler({});
    server.cut_connections();
    CHECK_THROWS_AS(workers.one->trials(), runner::core::RunError);
  }
}

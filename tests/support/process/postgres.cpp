#include "tests/support/process/postgres.h"

#include <pwd.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>

#include "tests/support/skip.h"

namespace tests {
namespace {

constexpr const char* kPrograms = "/usr/lib/postgresql/15/bin/";
constexpr const char* kUser = "postgres";  // of the package, and in the server that is made here

std::string program(const std::string& name) { return kPrograms + name; }

}  // namespace

Postgres::Postgres() {
  if (access(program("postgres").c_str(), X_OK) != 0) {
    skip(program("postgres") + " is not installed (postgresql-15)");
  }
  if (getuid() == 0) {
    const passwd* user = getpwnam(kUser);
    REQUIRE(user != nullptr);
    REQUIRE(chown(dir_.path().c_str(), user->pw_uid, user->pw_gid) == 0);
  }
  Process made(as_user({program("initdb"), "-D", dir_ / "data", "-U", kUser, "-A", "trust", "-N"}));
  const int status = made.wait();
  INFO(made.output());
  REQUIRE(status == 0);
  start();
}

Postgres::~Postgres() {
  server_->send(SIGQUIT);
  server_->wait();
}

std::vector<std::string> Postgres::as_user(std::vector<std::string> command) const {
  if (getuid() != 0) return command;
  const std::vector<std::string> before = {"/usr/bin/setpriv", "--reuid", kUser, "--regid", kUser, "--clear-groups"};
  command.insert(command.begin(), before.begin(), before.end());
  return command;
}

void Postgres::start() {
  server_ = std::make_unique<Process>(as_user({program("postgres"), "-D", dir_ / "data", "-c",
                                               "listen_addresses=", "-c", "unix_socket_directories=" + dir_.path()}));
  const bool is_up = server_->wait_for("database system is ready to accept connections");
  INFO(server_->output());
  REQUIRE(is_up);
}

std::string Postgres::address() const {
  std::string address = "postgresql:///postgres?user=";
  address += kUser;
  address += "&host=";
  return address += dir_.path();
}

void Postgres::crash_and_restart() {
  server_->send(SIGQUIT);
  server_->wait();
  start();
}

void Postgres::cut_connections() const {
  ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'roux'");
}

void Postgres::hold() {
  std::string schema = ask("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'roux\\_%'");
  schema.pop_back();  // the end of its line
  holder_ = std::make_unique<Process>(std::vector<std::string>{"/usr/bin/psql", "-X", "-d", address(), "-c", "BEGIN",
                                                               "-c", "LOCK TABLE " + schema + ".changes", "-c",
                                                               "SELECT pg_sleep(3600)"});
  REQUIRE(holder_->wait_for("LOCK TABLE"));
}

void Postgres::release() {
  ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(3600)' AND pid <> "
      "pg_backend_pid()");
  holder_->wait();
}

std::string Postgres::ask(const std::string& sql) const {
  Process psql({"/usr/bin/psql", "-X", "-A", "-t", "-d", address(), "-c", sql});
  const int status = psql.wait();
  INFO(psql.output());
  REQUIRE(status == 0);
  return psql.output();
}

}  // namespace tests

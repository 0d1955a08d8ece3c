#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/support/process/process.h"
#include "tests/support/temp_dir.h"

namespace tests {

/// A PostgreSQL server of its own, with everything it keeps in a folder: reached through a socket there, without a
/// password. As root it runs as Debian's user for it, because the server refuses root. Ended with the object.
class Postgres {
 public:
  /// The test is skipped where the server is not installed.
  Postgres();
  ~Postgres();
  Postgres(const Postgres&) = delete;
  Postgres& operator=(const Postgres&) = delete;

  /// For `sweep.store`.
  std::string address() const;
  /// Ends it as a power cut would, and starts it again; blocks until it answers.
  void crash_and_restart();
  /// Ends all connections of roux but keeps the server.
  void cut_connections() const;
  /// No worker changes a trial of the only sweep there until release(): all come to wait.
  void hold();
  void release();
  /// What `psql` prints.
  std::string ask(const std::string& sql) const;

 private:
  std::vector<std::string> as_user(std::vector<std::string> command) const;
  void start();

  TempDir dir_;
  std::unique_ptr<Process> server_, holder_;
};

}  // namespace tests

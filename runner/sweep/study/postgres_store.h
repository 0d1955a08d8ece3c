#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runner/sweep/study/study_store.h"

namespace runner::sweep {

/// A schema of a PostgreSQL database for each sweep, named by the id of that and described by its name. The server's
/// clock counts: a worker sends heartbeats, and is dead after none for the length of its lease, during which server and
/// observer were up.
class PostgresStore final : public StudyStore {
 public:
  struct Options {
    std::string address;  ///< without a password
    std::string sweep;    ///< its name, `<run_name>-<id>`
    std::int64_t lease_ms = 0;
  };
  /// Runs `set_up` in the transaction that makes the schema. RunError when the server does not respond, or refuses.
  static std::unique_ptr<PostgresStore> create(const Options& options, std::int64_t format,
                                               const std::function<void(StudyStore&)>& set_up);
  /// RunError too where there is no such sweep, or one of another format.
  static std::unique_ptr<PostgresStore> open(const Options& options, std::int64_t format);
  /// The schema of a sweep of that name.
  static std::string schema_of(const std::string& sweep);
  /// Names of the sweeps that a database keeps and this user may see, in no order.
  static std::vector<std::string> names(const std::string& address);

  ~PostgresStore() override;
  Rows run(std::string_view sql, const std::vector<Value>& values = {}) override;
  Written transact(const std::function<bool()>& work) override;
  void sync() override {}  // each COMMIT does
  std::int64_t now_ms() override;
  void register_worker(std::int64_t worker) override { heartbeat(worker); }
  bool heartbeat(std::int64_t worker) override;
  void unregister_worker(std::int64_t worker) override;
  bool is_alive(std::int64_t worker) override;
  void set_lease(std::int64_t lease_ms) override { options_.lease_ms = lease_ms; }
  void set_outage_handler(OutageHandler handler) override { outage_handler_ = std::move(handler); }

 private:
  explicit PostgresStore(Options options);
  /// Why there is no connection; "" when there is one.
  std::string connect();
  void connect_again(std::string why);
  void roll_back();
  Rows execute(std::string_view sql, const std::vector<Value>& values);

  Options options_;
  std::string schema_;
  struct Connection;
  std::unique_ptr<Connection> connection_;
  bool in_transaction_ = false;
  std::int64_t connected_again_ms_ = 0;  ///< 0: it has never been down
  OutageHandler outage_handler_;
};

}  // namespace runner::sweep

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace runner::sweep {

/// What a column holds; nothing is NULL.
using Value = std::variant<std::monostate, std::int64_t, double, std::string>;

/// One row of an answer; columns count from 0.
class Row {
 public:
  explicit Row(std::vector<Value> values) : values_(std::move(values)) {}

  bool is_null(std::size_t column) const { return std::holds_alternative<std::monostate>(values_.at(column)); }
  std::int64_t integer(std::size_t column) const { return std::get<std::int64_t>(values_.at(column)); }
  double real(std::size_t column) const;  ///< NULL is NaN
  const std::string& text(std::size_t column) const { return std::get<std::string>(values_.at(column)); }

 private:
  std::vector<Value> values_;
};

using Rows = std::vector<Row>;

/// The database of a study, and which of its workers are alive. One connection, used by one thread.
///
/// SQL is what SQLite and PostgreSQL have in common, with `?` for the values in their order; NaN is written as NULL.
/// RunError when the database refuses.
class StudyStore {
 public:
  virtual ~StudyStore() = default;

  /// One statement. Outside of transact() it must be idempotent, as it is repeated when the connection is lost.
  virtual Rows run(std::string_view sql, const std::vector<Value>& values = {}) = 0;

  enum class Written {
    kYes,
    kNo,       ///< `work` did not want it
    kUnknown,  ///< the connection was lost on the way, and is there again: look
  };
  /// Runs `work` as one transaction, committed if it returns true. Those that change trials begin with the row that
  /// counts them, so they are serialized.
  virtual Written transact(const std::function<bool()>& work) = 0;

  /// Forces commits to disk.
  virtual void sync() = 0;

  /// The time that counts for all workers.
  virtual std::int64_t now_ms() = 0;

  /// Registers the worker of this process.
  virtual void register_worker(std::int64_t worker) = 0;
  /// Sends a heartbeat; false when it has been taken for dead. Call every kHeartbeatMs, or sooner.
  virtual bool heartbeat(std::int64_t worker) = 0;
  /// The worker exits cleanly.
  virtual void unregister_worker(std::int64_t worker) = 0;
  virtual bool is_alive(std::int64_t worker) = 0;
  /// With PostgreSQL a worker without a heartbeat for this long is dead; a file has locks instead.
  virtual void set_lease(std::int64_t lease_ms) = 0;

  struct Outage {
    std::string why;
    int attempts = 0;  ///< to connect again, since it began
    std::int64_t wait_ms = 0;
  };
  /// Called when the database does not respond: waits, and returns whether to retry. The default returns false.
  using OutageHandler = std::function<bool(const Outage& outage)>;
  virtual void set_outage_handler(OutageHandler handler) = 0;
};

}  // namespace runner::sweep

#include "runner/sweep/study/postgres_store.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <utility>

#include "runner/core/error.h"
#include "runner/store/database/text.h"
#include "runner/sweep/study/libpq.h"

namespace runner::sweep {
namespace {

constexpr std::int64_t kFirstWaitMs = 100, kLongestWaitMs = 5000;
constexpr int kCollisionsMax = 100;  // of one statement
constexpr const char* kNow = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/// The connection broke: what was asked may have been done, or not.
struct ConnectionLost : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The server asks for the transaction once more.
struct Collision : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What libpq says, without what it could mean.
std::string line_of(std::string text) {
  if (text.starts_with("ERROR:  ") || text.starts_with("FATAL:  ")) text.erase(0, 8);
  return text.substr(0, text.find('\n'));  // more lines say what that could mean
}

/// `?` becomes `$1`, `$2` and so on.
std::string numbered(std::string_view sql) {
  std::string text;
  int number = 0;
  for (const char c : sql) {
    c == '?' ? text += "$" + std::to_string(++number) : text += c;
  }
  return text;
}

struct TextOf {
  std::string operator()(std::monostate) const { return ""; }
  std::string operator()(std::int64_t value) const { return std::to_string(value); }
  std::string operator()(const std::string& value) const { return value; }
  std::string operator()(double value) const {
    if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
    std::array<char, 40> text{};
    std::snprintf(text.data(), text.size(), "%.17g", value);
    return text.data();
  }
};

bool is_null(const Value& value) {
  const auto* real = std::get_if<double>(&value);
  return std::holds_alternative<std::monostate>(value) || (real != nullptr && std::isnan(*real));
}

/// By the object ids of the types in pg_type.dat, which never change.
Value value_of(Oid type, const char* text) {
  switch (type) {
    case 20:  // int8
    case 21:
    case 23: return std::int64_t{std::stoll(text)};
    case 700:  // float4
    case 701: return std::stod(text);
  }
  return std::string(text);
}

std::string in_quotes(std::string_view text, char quote) {
  std::string quoted(1, quote);
  for (const char c : text) {
    if (c == quote) quoted += c;
    quoted += c;
  }
  return quoted + quote;
}

core::RunError refused(const std::string& address, const std::string& why, const std::string& hint = "") {
  return core::RunError(address + ": " + why, hint);
}

}  // namespace

struct PostgresStore::Connection {
  explicit Connection(PGconn* opened) : handle(opened) {}
  ~Connection() { libpq().finish(handle); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  std::string error() const { return line_of(libpq().error_message(handle)); }

  PGconn* handle;
};

PostgresStore::PostgresStore(Options options) : options_(std::move(options)) {
  if (!options_.sweep.empty()) schema_ = schema_of(options_.sweep);
  if (const std::string why = connect(); !why.empty()) {
    throw refused(options_.address, why,
                  "check that the server is running and that PGPASSWORD or ~/.pgpass has the password");
  }
}

PostgresStore::~PostgresStore() = default;

std::string PostgresStore::connect() {
  // What stands before `dbname` is a default, which the address may overrule.
  constexpr std::array keywords = {"connect_timeout",
                                   "tcp_user_timeout",
                                   "keepalives_idle",
                                   "dbname",
                                   "fallback_application_name",
                                   "client_encoding",
                                   static_cast<const char*>(nullptr)};
  const std::array values = {
      "10", "30000", "30", options_.address.c_str(), "roux", "UTF8", static_cast<const char*>(nullptr)};
  connection_.reset();
  connection_ = std::make_unique<Connection>(libpq().connect(keywords.data(), values.data(), 1));
  if (libpq().status(connection_->handle) != CONNECTION_OK) return connection_->error();
  libpq().set_notice_processor(
      connection_->handle, [](void*, const char*) {}, nullptr);
  if (schema_.empty()) return "";
  try {
    execute("SET search_path TO " + in_quotes(schema_, '"'), {});
    // A client that is cut off, or suspended, within a transaction must not block all others.
    execute("SET idle_in_transaction_session_timeout TO 30000", {});
  } catch (const ConnectionLost& lost) {
    return lost.what();
  }
  return "";
}

void PostgresStore::connect_again(std::string why) {
  Outage outage{options_.address + " does not respond: " + why, 0, kFirstWaitMs};
  for (;; ++outage.attempts, outage.wait_ms = std::min(2 * outage.wait_ms, kLongestWaitMs)) {
    if (!outage_handler_ || !outage_handler_(outage)) throw refused(options_.address, why);
    why = connect();
    if (!why.empty()) continue;
    try {
      connected_again_ms_ = execute(std::string("SELECT ") + kNow, {}).front().integer(0);
      return;
    } catch (const ConnectionLost& lost) {
      why = lost.what();
    }
  }
}

Rows PostgresStore::execute(std::string_view sql, const std::vector<Value>& values) {
  std::vector<std::string> texts;
  for (const Value& value : values) texts.push_back(std::visit(TextOf(), value));
  std::vector<const char*> parameters;
  for (std::size_t i = 0; i < values.size(); ++i) parameters.push_back(is_null(values[i]) ? nullptr : texts[i].c_str());
  const Libpq& pq = libpq();
  const std::unique_ptr<PGresult, decltype(pq.clear)> result(
      pq.execute(connection_->handle, numbered(sql).c_str(), static_cast<int>(values.size()), nullptr,
                 parameters.data(), nullptr, nullptr, 0),
      pq.clear);
  const ExecStatusType status = pq.result_status(result.get());
  if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
    const std::string why = connection_->error();
    const char* field = pq.result_error_field(result.get(), PG_DIAG_SQLSTATE);
    // A server that is there gives a code. 57P01 to 57P03: an administrator ended the connection, the server crashed,
    // or it is not up yet. The status of the connection alone does not tell: it stays good after a write that failed.
    const std::string_view code = field != nullptr ? field : "57P01";
    if (pq.status(connection_->handle) != CONNECTION_OK || code.starts_with("57P0")) throw ConnectionLost(why);
    if (code.starts_with("40")) throw Collision(why);  // of two transactions
    throw refused(options_.address, why);
  }
  Rows rows;
  const int columns = pq.columns(result.get());
  for (int row = 0; row < pq.rows(result.get()); ++row) {
    std::vector<Value> list;
    for (int column = 0; column < columns; ++column) {
      const bool nothing = pq.is_null(result.get(), row, column) != 0;
      list.push_back(nothing ? Value() : value_of(pq.type(result.get(), column), pq.value(result.get(), row, column)));
    }
    rows.emplace_back(std::move(list));
  }
  return rows;
}

Rows PostgresStore::run(std::string_view sql, const std::vector<Value>& values) {
  for (int collisions = 0;;) {
    try {
      return execute(sql, values);
    } catch (const ConnectionLost& lost) {
      if (in_transaction_) throw;
      connect_again(lost.what());
    } catch (const Collision& collision) {  // a statement by itself is a transaction too
      if (in_transaction_) throw;
      if (++collisions > kCollisionsMax) throw refused(options_.address, collision.what());
    }
  }
}

StudyStore::Written PostgresStore::transact(const std::function<bool()>& work) {
  std::string why;
  in_transaction_ = true;
  try {
    execute("BEGIN", {});
    const bool is_wanted = work();
    execute(is_wanted ? "COMMIT" : "ROLLBACK", {});
    in_transaction_ = false;
    return is_wanted ? Written::kYes : Written::kNo;
  } catch (const ConnectionLost& lost) {
    why = lost.what();
  } catch (const Collision&) {
    roll_back();
  } catch (...) {
    roll_back();
    throw;
  }
  in_transaction_ = false;
  if (!why.empty()) connect_again(why);
  return Written::kUnknown;
}

void PostgresStore::roll_back() {
  in_transaction_ = false;
  try {
    execute("ROLLBACK", {});
  } catch (const ConnectionLost&) {  // which does the same; the next call connects again
  }
}

std::unique_ptr<PostgresStore> PostgresStore::create(const Options& options, std::int64_t format,
                                                     const std::function<void(StudyStore&)>& set_up) {
  std::unique_ptr<PostgresStore> made(new PostgresStore(options));
  const std::string schema = in_quotes(made->schema_, '"');
  made->transact([&] {
    try {
      made->run("CREATE SCHEMA " + schema);
    } catch (const core::RunError& error) {
      throw core::RunError(error.what(), "GRANT CREATE ON DATABASE lets the user make the schema of a sweep");
    }
    made->run("COMMENT ON SCHEMA " + schema + " IS " + in_quotes(options.sweep, '\''));
    made->run("CREATE TABLE format(number BIGINT NOT NULL)");
    made->run("INSERT INTO format VALUES(?)", {format});
    set_up(*made);
    return true;
  });
  return made;
}

std::unique_ptr<PostgresStore> PostgresStore::open(const Options& options, std::int64_t format) {
  std::unique_ptr<PostgresStore> store(new PostgresStore(options));
  const Rows there = store->run("SELECT has_schema_privilege(oid, 'USAGE')::int FROM pg_namespace WHERE nspname = ?",
                                {store->schema_});
  if (there.empty()) throw refused(options.address, "there is no sweep " + options.sweep);
  if (there.front().integer(0) == 0) {
    throw refused(options.address, "sweep " + options.sweep + " is another user's",
                  "GRANT USAGE ON SCHEMA " + store->schema_ + " and rights to its tables let this one work on it");
  }
  const std::int64_t number = store->run("SELECT number FROM format").front().integer(0);
  if (number == format) return store;
  throw refused(options.address,
                "sweep " + options.sweep + " has format " + std::to_string(number) + ", and this roux reads " +
                    std::to_string(format),
                "use the version of roux that wrote it");
}

std::string PostgresStore::schema_of(const std::string& sweep) {
  const auto name = store::parse_folder_name(sweep);
  RUNNER_ASSERT(name.has_value(), "a sweep's name ends with its id");
  return "roux_" + name->id;
}

std::vector<std::string> PostgresStore::names(const std::string& address) {
  PostgresStore store(Options{address, "", 0});
  std::vector<std::string> list;
  for (const Row& row : store.run("SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace "
                                  "WHERE nspname LIKE 'roux\\_%' AND has_schema_privilege(oid, 'USAGE')")) {
    if (!row.is_null(0) && store::parse_folder_name(row.text(0))) list.push_back(row.text(0));
  }
  return list;
}

std::int64_t PostgresStore::now_ms() { return run(std::string("SELECT ") + kNow).front().integer(0); }

bool PostgresStore::heartbeat(std::int64_t worker) {
  return !run(std::string("UPDATE workers SET seen_ms = ") + kNow + " WHERE id = ? AND gone = 0 RETURNING id", {worker})
              .empty();
}

void PostgresStore::unregister_worker(std::int64_t worker) {
  run("UPDATE workers SET gone = 1 WHERE id = ?", {worker});
}

bool PostgresStore::is_alive(std::int64_t worker) {
  // While the server was down no worker could send a heartbeat, nor perhaps while this process was suspended.
  return !run(std::string("SELECT 1 FROM workers WHERE id = ? AND gone = 0 AND greatest(seen_ms, ?, "
                          "(extract(epoch FROM pg_postmaster_start_time()) * 1000)::bigint) > ") +
                  kNow + " - ?",
              {worker, connected_again_ms_, options_.lease_ms})
              .empty();
}

}  // namespace runner::sweep

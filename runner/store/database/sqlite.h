#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "runner/core/error.h"
#include "runner/core/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace runner::store {

/// An error of SQLite; the message names the file. A RunError, so that it may cross layers that cannot handle it.
class SqliteError : public core::RunError {
 public:
  SqliteError(const std::string& path, int extended_code, const std::string& text);
  /// What lies at the path is no file.
  explicit SqliteError(const core::Failure& unfit);
  /// A code beside those of SQLite: `ulimit -f` allows no larger file. Waiting for the disk does not help.
  static constexpr int kSizeLimit = -1;

  /// The disk is full, or the file is locked by another process: retry with the same data.
  bool is_transient() const;
  bool is_full() const;
  /// The disk does not accept data: it is full, a quota is used up, or it fails.
  bool is_disk_error() const;
  /// The bytes are not a database, or a damaged one.
  bool is_corrupt() const;

 private:
  struct Told {};
  SqliteError(Told, const std::string& path, int code, const std::string& text);
  int code_;
};

/// A cached prepared statement.
struct CachedStatement {
  sqlite3_stmt* statement = nullptr;
  bool in_use = false;
};

/// A prepared statement. Borrow of its database; bind counts from 1, columns from 0.
class Statement {
 public:
  Statement(sqlite3* database, std::string path, std::string_view sql);
  Statement(sqlite3* database, std::string path, CachedStatement& cached);  ///< returns it on destruction
  ~Statement();
  Statement(Statement&& other) noexcept;
  Statement& operator=(Statement&&) = delete;

  Statement& bind(int index, std::int64_t value);
  Statement& bind(int index, double value);  ///< NaN becomes NULL, as in SQLite, and columns return it as NaN
  Statement& bind(int index, std::string_view text);

  /// True while there is a row.
  bool step();
  /// For statements without rows: steps once, then is ready to be bound again.
  void run();
  void reset();

  enum class Type { kNull, kInteger, kReal, kText };
  int columns() const;
  Type type(int column) const;  ///< type of the value
  bool is_null(int column) const;
  std::int64_t integer(int column) const;
  double real(int column) const;  ///< NULL is NaN
  std::string text(int column) const;
  std::string_view view(int column) const;  ///< the same, until the next step

 private:
  void check(int code) const;

  sqlite3* database_;
  std::string path_;
  sqlite3_stmt* statement_ = nullptr;
  CachedStatement* cached_ = nullptr;
};

/// One connection, used by one thread at a time. Every call throws SqliteError.
class Database {
 public:
  enum class Mode {
    kCreate,  ///< reads and writes; made when missing
    kWrite,   ///< reads and writes; must be there
    kRead,    ///< reads; needs no write access unless a writer left a journal
  };
  Database(const std::string& path, Mode mode);
  /// An in-memory database with the content of a file; `image` may be empty, like a file.
  static Database in_memory(const std::string& image);
  ~Database();
  Database(Database&& other) noexcept;
  Database& operator=(Database&&) = delete;

  void execute(const char* sql);
  /// Whether the file was renamed or deleted, so that others cannot find it.
  bool has_moved() const;
  /// Whether the file starts like a database and is at least `bytes_min` long, which is set to its length; false when
  /// another program truncated it or overwrote its start while it was open.
  bool is_whole(std::int64_t& bytes_min) const;
  /// Timeout for waiting for another writer.
  void set_busy_timeout(int ms);
  Statement prepare(std::string_view sql) const;
  /// Caches prepared statements from now on, for repeated statements.
  void cache_statements();
  std::int64_t pragma(const char* name) const;
  const std::string& path() const { return path_; }
  std::string image() const;        ///< the content of its file
  std::size_t image_bytes() const;  ///< of one that lies in memory

 private:
  Database() = default;
  void reopen_if_needed(int& code);

  using CachedStatements = std::map<std::string, CachedStatement, std::less<>>;
  sqlite3* database_ = nullptr;
  std::string path_;
  std::unique_ptr<CachedStatements> cached_;  ///< by their text; null where none are kept
};

/// Rolls back unless committed.
class Transaction {
 public:
  explicit Transaction(Database& database);
  ~Transaction();
  void commit();

 private:
  Database& database_;
  bool open_ = true;
};

/// A read snapshot: all reads while it lives see one state, despite concurrent writes.
class ReadTransaction {
 public:
  explicit ReadTransaction(Database& database);
  ~ReadTransaction();
  ReadTransaction(const ReadTransaction&) = delete;
  ReadTransaction& operator=(const ReadTransaction&) = delete;

 private:
  Database& database_;
};

/// WAL needs shared memory between all that open the file, which network and cluster file systems do not give.
bool wal_is_safe(std::uint64_t file_system_magic);
/// The same for the file system that holds `folder`.
bool wal_is_safe_in(const std::string& folder);

}  // namespace runner::store

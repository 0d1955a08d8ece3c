#include "runner/store/database/sqlite.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <utility>

#include "runner/core/platform/files.h"

namespace runner::store {
namespace {

// Readers in DELETE mode block a writer for a few milliseconds; beyond this the writer retries by itself.
constexpr int kWriterPatienceMs = 250;
// A reader has no retry. A writer that ends its journal on a busy machine may need a while.
constexpr int kReaderPatienceMs = 2000;

constexpr std::array<const char*, 3> kBeside = {"", "-wal", "-journal"};  // what SQLite writes

std::string uri_of(const std::string& path, std::string_view query) {
  static constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-";
  static constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string uri = "file:";
  for (const char c : path) {
    if (kPlain.find(c) != std::string_view::npos) {
      uri += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      uri += {'%', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return uri.append(query);
}

sqlite3* open(const std::string& name, int flags, int& code) {
  // SQLite's memory statistics are not used, and cost a process-wide lock for each allocation of a row: a quarter of
  // the writer's time.
  [[maybe_unused]] static const int not_counted = sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
  sqlite3* database = nullptr;
  code = sqlite3_open_v2(name.c_str(), &database, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nullptr);
  return database;
}

/// With the rights that the user's umask leaves: SQLite itself gives none to the group, and its other files of a
/// database those of this one. One that is there is not opened: closing it would give up the locks of this process.
void create_by_umask(const std::string& path) {
  const int made = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (made >= 0) ::close(made);
}

int touch_schema(sqlite3* database) {
  return sqlite3_exec(database, "SELECT 1 FROM sqlite_master LIMIT 1", nullptr, nullptr, nullptr);
}

/// Whether `ulimit -f` is why the file, or one that SQLite keeps beside it, did not take what was written: the system's
/// reason does not reach the caller. A write at the limit fills the file up to it first.
bool meets_size_limit(const std::string& path, int extended_code) {
  constexpr std::uint64_t kSharedMemoryBytes = 32 << 10;  // the least that the file beside a WAL has
  if (extended_code == SqliteError::kSizeLimit) return true;
  const int primary = extended_code & 0xff;
  rlimit limit = {};
  if ((primary != SQLITE_IOERR && primary != SQLITE_FULL) || getrlimit(RLIMIT_FSIZE, &limit) != 0) return false;
  if (limit.rlim_cur == RLIM_INFINITY) return false;
  if (extended_code == SQLITE_IOERR_SHMSIZE && limit.rlim_cur < kSharedMemoryBytes) return true;
  return std::any_of(kBeside.begin(), kBeside.end(), [&](const char* ending) {
    std::error_code absent;
    const auto bytes = std::filesystem::file_size(path + ending, absent);
    return !absent && bytes >= limit.rlim_cur;
  });
}

bool is_full_code(int extended_code) { return (extended_code & 0xff) == SQLITE_FULL; }

}  // namespace

SqliteError::SqliteError(const std::string& path, int extended_code, const std::string& text)
    : SqliteError(Told{}, path, meets_size_limit(path, extended_code) ? kSizeLimit : extended_code, text) {}

SqliteError::SqliteError(Told, const std::string& path, int code, const std::string& text)
    : core::RunError(path + ": " + (code == kSizeLimit ? "`ulimit -f` allows no file of this size" : text),
                     code == kSizeLimit   ? "raise the limit; the same command then resumes"
                     : is_full_code(code) ? "free some space; the same command then resumes"
                                          : "",
                     is_full_code(code) ? core::kExitResumable : core::kExitFailed),
      code_(code) {}

SqliteError::SqliteError(const core::Failure& unfit)
    : core::RunError(unfit.message, unfit.hint, unfit.exit_code), code_(SQLITE_CANTOPEN) {}

bool SqliteError::is_transient() const {
  switch (code_ & 0xff) {
    case SQLITE_FULL:
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_IOERR:
    case SQLITE_NOMEM: return true;
    default: return false;
  }
}

bool SqliteError::is_full() const { return is_full_code(code_); }

bool SqliteError::is_disk_error() const { return is_full() || (code_ & 0xff) == SQLITE_IOERR; }

bool SqliteError::is_corrupt() const {
  const int primary = code_ & 0xff;
  return primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB || primary == SQLITE_ERROR;
}

Statement::Statement(sqlite3* database, std::string path, std::string_view sql)
    : database_(database), path_(std::move(path)) {
  check(sqlite3_prepare_v2(database_, sql.data(), static_cast<int>(sql.size()), &statement_, nullptr));
}

Statement::Statement(sqlite3* database, std::string path, CachedStatement& cached)
    : database_(database), path_(std::move(path)), statement_(cached.statement), cached_(&cached) {
  cached.in_use = true;
}

Statement::~Statement() {
  if (cached_ == nullptr) {
    sqlite3_finalize(statement_);
    return;
  }
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
  cached_->in_use = false;
}

Statement::Statement(Statement&& other) noexcept
    : database_(other.database_),
      path_(std::move(other.path_)),
      statement_(std::exchange(other.statement_, nullptr)),
      cached_(std::exchange(other.cached_, nullptr)) {}

Statement& Statement::bind(int index, std::int64_t value) {
  check(sqlite3_bind_int64(statement_, index, value));
  return *this;
}

Statement& Statement::bind(int index, double value) {
  check(sqlite3_bind_double(statement_, index, value));
  return *this;
}

Statement& Statement::bind(int index, std::string_view text) {
  // A null pointer would bind NULL, and an empty view may carry one.
  const char* data = text.empty() ? "" : text.data();
  check(sqlite3_bind_text(statement_, index, data, static_cast<int>(text.size()), SQLITE_TRANSIENT));
  return *this;
}

bool Statement::step() {
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  // The error belongs to the step: the reset must not hide it.
  const SqliteError error(path_, code, sqlite3_errmsg(database_));
  sqlite3_reset(statement_);
  throw error;
}

void Statement::run() {
  step();
  reset();
}

void Statement::reset() { sqlite3_reset(statement_); }

int Statement::columns() const { return sqlite3_column_count(statement_); }

Statement::Type Statement::type(int column) const {
  switch (sqlite3_column_type(statement_, column)) {
    case SQLITE_NULL: return Type::kNull;
    case SQLITE_INTEGER: return Type::kInteger;
    case SQLITE_FLOAT: return Type::kReal;
  }
  return Type::kText;
}

bool Statement::is_null(int column) const { return type(column) == Type::kNull; }

std::int64_t Statement::integer(int column) const { return sqlite3_column_int64(statement_, column); }

double Statement::real(int column) const {
  return is_null(column) ? std::numeric_limits<double>::quiet_NaN() : sqlite3_column_double(statement_, column);
}

std::string Statement::text(int column) const { return std::string(view(column)); }

std::string_view Statement::view(int column) const {
  const unsigned char* data = sqlite3_column_text(statement_, column);
  if (data == nullptr) return "";
  return {reinterpret_cast<const char*>(data), static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

void Statement::check(int code) const {
  if (code != SQLITE_OK) throw SqliteError(path_, code, sqlite3_errmsg(database_));
}

Database::Database(const std::string& path, Mode mode) : path_(path) {
  for (const char* ending : kBeside) {  // SQLite opens all of them, and waits for a FIFO
    if (const auto file = core::check_is_file(path + ending); !file) throw SqliteError(file.failure());
  }
  int flags = SQLITE_OPEN_READWRITE;
  if (mode == Mode::kCreate) flags |= SQLITE_OPEN_CREATE;
  if (mode == Mode::kRead) flags = SQLITE_OPEN_READONLY;
  int code = SQLITE_OK;
  if (mode == Mode::kCreate) create_by_umask(path);
  database_ = open(path, flags, code);
  if (code == SQLITE_OK) {
    sqlite3_busy_timeout(database_, mode == Mode::kRead ? kReaderPatienceMs : kWriterPatienceMs);
  }
  if (code == SQLITE_OK && mode == Mode::kRead) reopen_if_needed(code);
  if (code != SQLITE_OK) {
    const std::string text = database_ != nullptr ? sqlite3_errmsg(database_) : sqlite3_errstr(code);
    sqlite3_close_v2(database_);
    database_ = nullptr;
    throw SqliteError(path_, code, text);
  }
}

/// A reader meets what a killed writer left behind.
void Database::reopen_if_needed(int& code) {
  const int touched = touch_schema(database_) & 0xff;
  const bool may_not_make_journal =
      touched == SQLITE_CANTOPEN || sqlite3_extended_errcode(database_) == SQLITE_READONLY_DIRECTORY;
  if (touched == SQLITE_READONLY && !may_not_make_journal) {
    // Half a transaction has to be taken back first, which is writing.
    sqlite3_close_v2(database_);
    database_ = open(path_, SQLITE_OPEN_READWRITE, code);
    if (code == SQLITE_OK) sqlite3_busy_timeout(database_, kReaderPatienceMs);
  } else if (may_not_make_journal) {
    // One is needed, but the folder is read-only. There can be no writer then.
    sqlite3_close_v2(database_);
    database_ = open(uri_of(path_, "?immutable=1"), SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, code);
  }
}

Database Database::in_memory(const std::string& image) {
  Database made;
  int code = SQLITE_OK;
  made.path_ = ":memory:";
  made.database_ = open(made.path_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, code);
  if (code == SQLITE_OK && !image.empty()) {
    const auto size = static_cast<sqlite3_int64>(image.size());
    auto* bytes = static_cast<unsigned char*>(sqlite3_malloc64(image.size()));
    if (bytes != nullptr) std::copy(image.begin(), image.end(), bytes);
    code = bytes == nullptr ? SQLITE_NOMEM
                            : sqlite3_deserialize(made.database_, "main", bytes, size, size,
                                                  SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE);
  }
  if (code != SQLITE_OK) throw SqliteError(made.path_, code, sqlite3_errstr(code));
  return made;
}

std::size_t Database::image_bytes() const {
  sqlite3_int64 size = 0;
  sqlite3_serialize(database_, "main", &size, SQLITE_SERIALIZE_NOCOPY);
  return static_cast<std::size_t>(size);
}

std::string Database::image() const {
  sqlite3_int64 size = 0;
  if (const unsigned char* there = sqlite3_serialize(database_, "main", &size, SQLITE_SERIALIZE_NOCOPY)) {
    return {reinterpret_cast<const char*>(there), static_cast<std::size_t>(size)};
  }
  unsigned char* bytes = sqlite3_serialize(database_, "main", &size, 0);
  if (bytes == nullptr) throw SqliteError(path_, SQLITE_NOMEM, sqlite3_errstr(SQLITE_NOMEM));
  std::string image(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
  sqlite3_free(bytes);
  return image;
}

Database::~Database() {
  if (cached_ != nullptr) {
    for (const auto& [sql, cached] : *cached_) sqlite3_finalize(cached.statement);
  }
  sqlite3_close_v2(database_);
}

Database::Database(Database&& other) noexcept
    : database_(std::exchange(other.database_, nullptr)),
      path_(std::move(other.path_)),
      cached_(std::move(other.cached_)) {}

void Database::execute(const char* sql) {
  const int code = sqlite3_exec(database_, sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) throw SqliteError(path_, code, sqlite3_errmsg(database_));
}

bool Database::has_moved() const {
  int moved = 0;
  return sqlite3_file_control(database_, "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK && moved != 0;
}

bool Database::is_whole(std::int64_t& bytes_min) const {
  // Through SQLite: closing a descriptor of our own would drop its locks.
  static constexpr std::string_view kMagic("SQLite format 3\0", 16);
  sqlite3_file* file = nullptr;
  sqlite3_int64 bytes = 0;
  std::array<char, kMagic.size()> start{};
  if (sqlite3_file_control(database_, "main", SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK || file == nullptr ||
      file->pMethods == nullptr || file->pMethods->xFileSize(file, &bytes) != SQLITE_OK) {
    return true;  // nothing to judge by
  }
  if (bytes < bytes_min) return false;
  bytes_min = bytes;
  const int read = file->pMethods->xRead(file, start.data(), static_cast<int>(start.size()), 0);
  return read != SQLITE_OK || std::string_view(start.data(), start.size()) == kMagic;
}

void Database::set_busy_timeout(int ms) { sqlite3_busy_timeout(database_, ms); }

Statement Database::prepare(std::string_view sql) const {
  if (cached_ == nullptr) return {database_, path_, sql};
  auto found = cached_->find(sql);
  if (found == cached_->end()) {
    sqlite3_stmt* statement = nullptr;
    const int code = sqlite3_prepare_v3(database_, sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT,
                                        &statement, nullptr);
    if (code != SQLITE_OK) throw SqliteError(path_, code, sqlite3_errmsg(database_));
    found = cached_->emplace(std::string(sql), CachedStatement{statement}).first;
  }
  if (found->second.in_use) return {database_, path_, sql};
  return {database_, path_, found->second};
}

void Database::cache_statements() {
  if (cached_ == nullptr) cached_ = std::make_unique<CachedStatements>();
}

std::int64_t Database::pragma(const char* name) const {
  Statement statement = prepare(std::string("PRAGMA ") + name);
  return statement.step() ? statement.integer(0) : 0;
}

Transaction::Transaction(Database& database) : database_(database) { database_.prepare("BEGIN IMMEDIATE").run(); }

Transaction::~Transaction() {
  if (!open_) return;
  try {
    database_.prepare("ROLLBACK").run();
  } catch (const SqliteError&) {
    // SQLite has already rolled back by itself (full disk, I/O error); there is nothing left to undo.
  }
}

void Transaction::commit() {
  database_.prepare("COMMIT").run();
  open_ = false;
}

ReadTransaction::ReadTransaction(Database& database) : database_(database) { database_.prepare("BEGIN").run(); }

ReadTransaction::~ReadTransaction() {
  try {
    database_.prepare("COMMIT").run();
  } catch (const SqliteError&) {
    // Nothing was written, so nothing is lost.
  }
}

bool wal_is_safe(std::uint64_t file_system_magic) {
  static constexpr std::array<std::uint64_t, 18> kShared = {
      0x6969,      // NFS
      0x517B,      // SMB
      0xFF534D42,  // CIFS
      0xFE534D42,  // SMB2
      0x65735546,  // FUSE: sshfs, glusterfs, s3fs
      0x0BD00BD0,  // Lustre
      0x47504653,  // GPFS
      0x00C36400,  // Ceph
      0x19830326,  // BeeGFS
      0x01021997,  // 9P
      0x01161970,  // GFS2
      0x7461636F,  // OCFS2
      0x20030528,  // OrangeFS
      0x5346414F,  // OpenAFS
      0x6B414653,  // kAFS
      0x73757245,  // Coda
      0x564C,      // NCP
      0x786F4256,  // VirtualBox shared folder
  };
  return std::find(kShared.begin(), kShared.end(), file_system_magic & 0xFFFFFFFFu) == kShared.end();
}

bool wal_is_safe_in(const std::string& folder) {
  struct statfs info {};
  return statfs(folder.c_str(), &info) == 0 && wal_is_safe(static_cast<std::uint64_t>(info.f_type));
}

}  // namespace runner::store

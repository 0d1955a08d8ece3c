#include "runner/sweep/study/libpq.h"

#include <dlfcn.h>

#include <string>

#include "runner/core/error.h"

namespace runner::sweep {
namespace {

constexpr const char* kLibrary = "libpq.so.5";

template <typename Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) throw core::RunError(std::string(kLibrary) + " has no " + name, "install a newer libpq5");
}

Libpq load() {
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw core::RunError(std::string("cannot load PostgreSQL's client library: ") + dlerror(),
                         "install the package libpq5");
  }
  Libpq loaded;
  find(library, "PQconnectdbParams", loaded.connect);
  find(library, "PQfinish", loaded.finish);
  find(library, "PQstatus", loaded.status);
  find(library, "PQerrorMessage", loaded.error_message);
  find(library, "PQexecParams", loaded.execute);
  find(library, "PQresultStatus", loaded.result_status);
  find(library, "PQresultErrorField", loaded.result_error_field);
  find(library, "PQntuples", loaded.rows);
  find(library, "PQnfields", loaded.columns);
  find(library, "PQftype", loaded.type);
  find(library, "PQgetisnull", loaded.is_null);
  find(library, "PQgetvalue", loaded.value);
  find(library, "PQclear", loaded.clear);
  find(library, "PQsetNoticeProcessor", loaded.set_notice_processor);
  return loaded;
}

}  // namespace

const Libpq& libpq() {
  static const Libpq loaded = load();
  return loaded;
}

}  // namespace runner::sweep

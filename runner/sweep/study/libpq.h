#pragma once

#include <libpq-fe.h>

namespace runner::sweep {

/// The functions of PostgreSQL's client library, which is loaded when a sweep needs it: sweeps in files do not. It is
/// the machine's own, and so are its certificates and ~/.pgpass.
struct Libpq {
  decltype(&PQconnectdbParams) connect;
  decltype(&PQfinish) finish;
  decltype(&PQstatus) status;
  decltype(&PQerrorMessage) error_message;
  decltype(&PQexecParams) execute;
  decltype(&PQresultStatus) result_status;
  decltype(&PQresultErrorField) result_error_field;
  decltype(&PQntuples) rows;
  decltype(&PQnfields) columns;
  decltype(&PQftype) type;
  decltype(&PQgetisnull) is_null;
  decltype(&PQgetvalue) value;
  decltype(&PQclear) clear;
  decltype(&PQsetNoticeProcessor) set_notice_processor;
};

/// RunError, with the package to install, where there is none.
const Libpq& libpq();

}  // namespace runner::sweep

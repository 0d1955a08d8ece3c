#pragma once

#include <libpq-fe.h>

namespace runner::sweep {

/// The functions of PostgreSQL's client library, which is opened when a sweep asks for it: whoever keeps sweeps in
/// files needs none. It is the machine's own, so that its certificates and its ~/.pgpass are too.
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

#include <catch2/catch.hpp>
#include <string>

#include "runner/sweep/spec/store_address.h"

using runner::sweep::read_store_address;

TEST_CASE("an address of a store may name a sweep, and has no password in it", "[sweep][store]") {
  CHECK(runner::sweep::is_store_address("postgres://db"));
  CHECK_FALSE(runner::sweep::is_store_address("runs/sweeps/tiny-1"));
  const auto plain = read_store_address("postgresql://me@db:5432/sweeps?sslmode=require").value();
  CHECK(plain.store == "postgresql://me@db:5432/sweeps?sslmode=require");
  CHECK(plain.sweep.empty());
  const auto named = read_store_address("postgresql:///sweeps?host=/run/postgresql#tiny").value();
  CHECK(named.store == "postgresql:///sweeps?host=/run/postgresql");
  CHECK(named.sweep == "tiny");
  for (const char* secret : {"postgresql://me:word@db/sweeps", "postgresql://db/sweeps?password=word",
                             "postgresql://db/sweeps?user=me&password=word", "postgresql:///x?sslpassword=word"}) {
    INFO(secret);
    const auto refused = read_store_address(secret);
    REQUIRE_FALSE(refused);
    CHECK(refused.failure().message == "the address of the store has a password in it");
    CHECK(refused.failure().hint == "remove it: use PGPASSWORD, ~/.pgpass or a service file");
  }
  CHECK(read_store_address("mysql://db").failure().message == "\"mysql://db\" is not the address of a store");
}

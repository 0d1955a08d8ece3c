#include "runner/core/platform/torch_process_setup.h"

#include <arpa/inet.h>
#include <netdb.h>

#include <catch2/catch.hpp>
#include <string>

TEST_CASE("no name server is asked for the name behind an address", "[core]") {
  runner::core::prepare_for_torch();
  sockaddr_in loopback{};
  loopback.sin_family = AF_INET;
  loopback.sin_port = htons(29500);
  loopback.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  char host[NI_MAXHOST], port[NI_MAXSERV];
  const int error = getnameinfo(reinterpret_cast<const sockaddr*>(&loopback), sizeof(loopback), host, sizeof(host),
                                port, sizeof(port), NI_NUMERICSERV);
  REQUIRE(error == 0);
  CHECK(std::string(host) == "127.0.0.1");
  CHECK(std::string(port) == "29500");
}

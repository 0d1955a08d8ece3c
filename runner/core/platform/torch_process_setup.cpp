#include "runner/core/platform/torch_process_setup.h"

#include <dlfcn.h>
#include <netdb.h>

#include <cstdlib>

namespace {

/// A thread of OpenMP looks out for its next work before it sleeps, by default so long that beside other programs it
/// keeps a core from the very thread that it waits for: a step then takes ten times as long. Some microseconds are
/// enough for the next kernel.
void shorten_waits() {
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) setenv("GOMP_SPINCOUNT", "2000", /*overwrite=*/0);
}

/// LibTorch's own record of collectives is one for all groups of a process, and their threads write into it without a
/// lock. roux keeps a record of its own (distributed/trail.h).
void leave_out_flight_recorder() { setenv("TORCH_FR_BUFFER_SIZE", "0", /*overwrite=*/0); }

}  // namespace

void runner::core::prepare_for_torch() {
  shorten_waits();
  leave_out_flight_recorder();
}

/// Stands before the C library's, for the program and for what it loads: addresses stay numbers. c10d asks for the name
/// behind each connection, on both ends, only to have it at hand for messages; with a name server that does not answer
/// each rank then waits 5 s and more for it, and so does everybody who wants something from the store meanwhile.
extern "C" [[gnu::visibility("default")]] int getnameinfo(const sockaddr* address, socklen_t address_size, char* host,
                                                          socklen_t host_size, char* service, socklen_t service_size,
                                                          int flags) {
  static const auto next = reinterpret_cast<decltype(&getnameinfo)>(dlsym(RTLD_NEXT, "getnameinfo"));
  return next(address, address_size, host, host_size, service, service_size, flags | NI_NUMERICHOST);
}

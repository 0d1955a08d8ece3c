#include "runner/core/platform/torch_process_setup.h"

#include <dlfcn.h>
#include <netdb.h>

#include <algorithm>
#include <cstdlib>
#include <initializer_list>

#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"

namespace {

/// An OpenMP thread spins for its next work before it sleeps, by default so long that next to other programs it takes a
/// core from the very thread that it waits for: a step then takes ten times as long. A few microseconds are enough for
/// the next kernel.
void shorten_waits() {
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) setenv("GOMP_SPINCOUNT", "2000", /*overwrite=*/0);
}

/// LibTorch's flight recorder is shared by all groups of a process, and their threads write to it without a lock. roux
/// has its own record (distributed/collective_log.h).
void leave_out_flight_recorder() { setenv("TORCH_FR_BUFFER_SIZE", "0", /*overwrite=*/0); }

}  // namespace

void runner::core::prepare_for_torch() {
  shorten_waits();
  leave_out_flight_recorder();
}

runner::core::Result<void> runner::core::check_cpu_capability() {
  const auto is_one_of = [](const char* value, std::initializer_list<const char*> known) {
    return value == nullptr ||
           std::any_of(known.begin(), known.end(), [value](const char* one) { return lower(value) == one; });
  };
  const char* const hint = "unset it to use all that this processor has";
  const char* const capability = std::getenv("ROUX_CPU_CAPABILITY");
  if (!is_one_of(capability, {"default", "avx2", "avx512", "avx512_bf16"})) {
    return Failure{
        "ROUX_CPU_CAPABILITY is " + quote(capability) + ", and limits kernels to default, avx2, avx512 or avx512_bf16",
        hint};
  }
  const char* const maker = std::getenv("ROUX_CPU_MAKER");
  if (!is_one_of(maker, {"amd", "intel"})) {
    return Failure{"ROUX_CPU_MAKER is " + quote(maker) + ", and chooses kernels as for amd or intel", hint};
  }
  const char* const bf16 = std::getenv("ROUX_CPU_BF16");
  if (is_one_of(bf16, {"0", "1"})) return {};
  return Failure{"ROUX_CPU_BF16 is " + quote(bf16) + ", and is 1 to round products to bfloat16 where that is slower",
                 hint};
}

/// Replaces the C library's function, for the program and the libraries it loads: addresses stay numeric. c10d resolves
/// the name of each connection, on both ends, only for messages; with an unresponsive name server each rank then waits
/// 5 s and more, as do all clients of the store meanwhile.
extern "C" [[gnu::visibility("default")]] int getnameinfo(const sockaddr* address, socklen_t address_size, char* host,
                                                          socklen_t host_size, char* service, socklen_t service_size,
                                                          int flags) {
  static const auto next = reinterpret_cast<decltype(&getnameinfo)>(dlsym(RTLD_NEXT, "getnameinfo"));
  return next(address, address_size, host, host_size, service, service_size, flags | NI_NUMERICHOST);
}

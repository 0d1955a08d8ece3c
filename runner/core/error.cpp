#include "runner/core/error.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "runner/core/log.h"

namespace runner::core {
namespace {

void print_frame(int number, void* address) {
  Dl_info info{};
  if (dladdr(address, &info) == 0 || info.dli_sname == nullptr) {
    std::fprintf(stderr, "  #%d %p %s\n", number, address, info.dli_fname ? info.dli_fname : "");
    return;
  }
  int status = 0;
  char* name = abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, &status);
  std::fprintf(stderr, "  #%d %s\n", number, status == 0 ? name : info.dli_sname);
  std::free(name);
}

}  // namespace

void assertion_failed(const char* condition, const char* why, const char* file, int line) {
  flush_log();
  std::fprintf(stderr, "roux: bug in roux at %s:%d: %s (%s)\n", file, line, condition, why);
  constexpr int kFramesMax = 48;
  void* frames[kFramesMax];
  const int count = backtrace(frames, kFramesMax);
  for (int i = 1; i < count; ++i) print_frame(i, frames[i]);
  std::fprintf(stderr, "please report this with the recipe and the lines above (version " ROUX_VERSION ")\n");
  std::fflush(stderr);
  // No destructors: inconsistent state must not be written to disk.
  _exit(kExitInternalError);
}

}  // namespace runner::core

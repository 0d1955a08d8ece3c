// Preloaded into a program, sets its clock a minute ahead; clocks that count from an arbitrary moment are left alone.
// The kernel is asked directly: whoever looks up the function that this one stands for allocates memory before there is
// an allocator.

#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

namespace {

constexpr time_t kAhead_s = 60;

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* now) noexcept {
  const auto status = static_cast<int>(syscall(SYS_clock_gettime, clock, now));
  if (status == 0 && clock == CLOCK_REALTIME) now->tv_sec += kAhead_s;
  return status;
}

int gettimeofday(timeval* now, void*) noexcept {
  timespec exact = {};
  const int status = clock_gettime(CLOCK_REALTIME, &exact);
  *now = {exact.tv_sec, exact.tv_nsec / 1000};
  return status;
}

time_t time(time_t* now) noexcept {
  timespec exact = {};
  clock_gettime(CLOCK_REALTIME, &exact);
  if (now != nullptr) *now = exact.tv_sec;
  return exact.tv_sec;
}
}

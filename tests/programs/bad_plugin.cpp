// A tracker that does harm where its options say: {"at": "log", "does": "throw"}; at open, log or finish.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <stdexcept>
#include <string>

#include "trackers/plugin_abi.h"

namespace {

std::string options;

bool says(const char* word) { return options.find(word) != std::string::npos; }

int come_to(const char* place) {
  if (!says(place)) return ROUX_TAKEN;
  if (says("throws words")) throw std::runtime_error("the plugin's own words");
  if (says("throws a number")) throw 42;
  if (says("crashes")) std::raise(SIGSEGV);
  if (says("hangs")) std::fputs("it hangs\n", stderr);
  while (says("hangs")) pause();
  while (says("prints")) std::puts("once more");
  return 7;  // which is no answer
}

int log(void*, const roux_point*, size_t) { return come_to("log"); }

int finish(void*, const char*, const char*) { return come_to("finish"); }

}  // namespace

extern "C" const roux_tracker* roux_tracker_open(const char* given) {
  options = given;
  come_to("open");
  static const roux_tracker tracker = [] {
    roux_tracker functions = {};
    functions.abi = ROUX_TRACKER_ABI;
    functions.log = log;
    functions.finish = finish;
    return functions;
  }();
  return &tracker;
}

#include "runner/cli/program.h"

// Read by jemalloc before main. Training frees and takes the same large tensors each step: huge pages, and nothing
// given back in between, make the small GPT 1.7 times faster. The other commands are too short to notice.
// What is free has to be used whatever its size: by default no tensor is put into a free range of more than 64 times
// its size, and free neighbours become one. Batches of different lengths then took new memory at each step, without
// end.
extern "C" {
__attribute__((visibility("default"))) const char* malloc_conf =
    "thp:always,dirty_decay_ms:-1,muzzy_decay_ms:-1,oversize_threshold:0,lg_extent_max_active_fit:40";
}

int main(int argc, char** argv) { return runner::cli::run_program({argv, argv + argc}); }

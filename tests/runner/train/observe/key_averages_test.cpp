#include "runner/train/observe/key_averages.h"

#include <catch2/catch.hpp>
#include <iterator>
#include <vector>

#include "runner/train/observe/profile_schedule.h"

namespace runner::train {
namespace {

TracedEvent event(const char* name, std::int64_t start_us, std::int64_t end_us, std::uint64_t thread = 1) {
  TracedEvent one;
  one.name = name;
  one.start_ns = start_us * 1000;
  one.end_ns = end_us * 1000;
  one.thread = one.end_thread = thread;
  return one;
}

TracedEvent range(const char* name, std::int64_t start_us, std::int64_t end_us) {
  TracedEvent one = event(name, start_us, end_us);
  one.is_range = true;
  return one;
}

TracedEvent memory(std::int64_t at_us, std::int64_t bytes, std::uint64_t thread = 1) {
  TracedEvent one = event("[memory]", at_us, at_us, thread);
  one.bytes = bytes;
  return one;
}

TracedEvent node(const char* name, std::int64_t start_us, std::int64_t end_us, std::int64_t sequence) {
  TracedEvent one = event(name, start_us, end_us);
  one.sequence = sequence;
  return one;
}

TracedEvent operation(TracedEvent one, std::uint64_t id) {
  one.id = id;
  return one;
}

TracedEvent started(TracedEvent one, std::uint64_t by) {
  one.started_by = by;
  return one;
}

TracedEvent on_gpu(TracedEvent one) {
  one.on_gpu = true;
  return one;
}

TracedEvent kernel(const char* name, std::int64_t start_us, std::int64_t end_us, std::uint64_t by) {
  return on_gpu(started(event(name, start_us, end_us, 7), by));
}

/// A step, a block with a product in it, and the product of its backward pass on another thread.
std::vector<TracedEvent> trained_on_gpu() {
  TracedEvent backward = operation(node("autograd::engine::evaluate_function: AddmmBackward0", 50, 80, 7), 5);
  TracedEvent product = operation(event("aten::mm", 55, 75, 2), 6);
  backward.thread = backward.end_thread = 2;
  return {
      operation(range("ProfilerStep#4", 0, 100), 1),
      operation(range("h.0", 5, 50), 2),
      operation(event("aten::linear", 10, 40), 3),
      operation(event("aten::addmm", 15, 35), 4),
      started(event("cudaLaunchKernel", 20, 22, 4321), 4),  // CUPTI knows the system's number of the thread
      backward,
      product,
      kernel("Memcpy HtoD (Pinned -> Device)", 1, 3, 0),  // of another stream
      kernel("gemm", 60, 90, 4),
      kernel("bias", 90, 95, 3),
      kernel("gemm", 100, 120, 6),
  };
}

const store::ProfileRow& row_of(const KeyAverages& averages, const std::string& name) {
  for (const store::ProfileRow& row : averages.rows) {
    if (row.name == name) return row;
  }
  FAIL("no row " << name);
  return averages.rows.front();
}

std::string actions(const ProfileSchedule& schedule, std::int64_t steps) {
  std::string text;
  for (std::int64_t step = 0; step < steps; ++step) text += ".wrS"[static_cast<std::size_t>(schedule.action(step))];
  return text;
}

}  // namespace

TEST_CASE("steps are recorded as torch.profiler.schedule says", "[train][profiler]") {
  // torch.profiler.schedule of PyTorch 2.11 with the same arguments.
  CHECK(actions({.wait = 1, .warmup = 1, .active = 2, .repeat = 1}, 8) == ".wrS....");
  CHECK(actions({.wait = 1, .warmup = 1, .active = 2, .repeat = 0}, 8) == ".wrS.wrS");
  CHECK(actions({.skip_first = 2, .warmup = 2, .active = 1, .repeat = 2}, 10) == "..wwSwwS..");
  CHECK(actions({.active = 3, .repeat = 0}, 7) == "rrSrrSr");
}

TEST_CASE("an event has the time that lies in no other one of its thread", "[train][profiler]") {
  const KeyAverages averages = key_averages({
      range("ProfilerStep#4", 0, 100),
      event("aten::linear", 10, 50),
      event("aten::addmm", 20, 40),
      event("aten::addmm", 60, 70),
      event("aten::item", 15, 18, 2),  // on another thread: within nothing
      range("ProfilerStep#5", 100, 160),
  });
  REQUIRE(averages.rows.size() == 4);
  const auto& step = row_of(averages, "ProfilerStep*");
  CHECK(step.is_range);
  CHECK(step.calls == 2);
  CHECK(step.cpu_us == 160);
  CHECK(step.self_cpu_us == 160 - 40 - 10);
  CHECK(row_of(averages, "aten::linear").self_cpu_us == 20);
  CHECK(row_of(averages, "aten::addmm").cpu_us == 30);
  CHECK(row_of(averages, "aten::item").self_cpu_us == 3);
  REQUIRE(averages.steps.size() == 2);
  CHECK(averages.steps[1].step == 5);
  CHECK(averages.steps[1].us == 60);
  CHECK(averages.stacks ==
        "ProfilerStep* 110\nProfilerStep*;aten::addmm 10\nProfilerStep*;aten::linear 20\n"
        "ProfilerStep*;aten::linear;aten::addmm 20\naten::item 3\n");
}

TEST_CASE("a kernel counts for what started it, and for what contains that", "[train][profiler]") {
  // From the key_averages() that PyTorch 2.11 makes of these events (torch.autograd.profiler, _parse_kineto_results).
  struct Case {
    const char* name;
    bool is_kernel;
    std::int64_t calls;
    double cpu_us, self_cpu_us, cuda_us, self_cuda_us;
  };
  static constexpr Case cases[] = {
      {"ProfilerStep*", false, 1, 100, 55, 35, 0},
      {"h.0", false, 1, 45, 15, 35, 0},
      {"aten::linear", false, 1, 30, 10, 35, 5},
      {"aten::addmm", false, 1, 20, 18, 30, 30},
      {"cudaLaunchKernel", false, 1, 2, 2, 0, 0},
      {"autograd::engine::evaluate_function: AddmmBackward0", false, 1, 30, 10, 20, 0},
      {"aten::mm", false, 1, 20, 20, 20, 20},
      {"gemm", true, 2, 0, 0, 50, 50},
      {"bias", true, 1, 0, 0, 5, 5},
      {"Memcpy HtoD (Pinned -> Device)", true, 1, 0, 0, 2, 2},
  };
  const KeyAverages averages = key_averages(trained_on_gpu());
  CHECK(averages.rows.size() == std::size(cases));
  for (const Case& c : cases) {
    INFO(c.name);
    const store::ProfileRow& row = row_of(averages, c.name);
    CHECK(row.is_kernel == c.is_kernel);
    CHECK(row.calls == c.calls);
    CHECK(row.cpu_us == c.cpu_us);
    CHECK(row.self_cpu_us == c.self_cpu_us);
    CHECK(row.cuda_us == c.cuda_us);
    CHECK(row.self_cuda_us == c.self_cuda_us);
  }
}

TEST_CASE("an operation that only calls itself has the kernels of both", "[train][profiler]") {
  const KeyAverages averages = key_averages({operation(event("aten::randperm", 0, 20), 1),
                                             operation(event("aten::randperm", 1, 19), 2), kernel("sort", 30, 36, 2)});
  CHECK(row_of(averages, "aten::randperm").calls == 1);
  CHECK(row_of(averages, "aten::randperm").self_cuda_us == 6);
}

TEST_CASE("a block has the kernels that its passes started", "[train][profiler]") {
  const auto blocks = block_averages(trained_on_gpu(), {"h.0"}, {{0, 5, 8}});
  CHECK(blocks.at(0).forward_cuda_us == 35);
  CHECK(blocks.at(0).backward_cuda_us == 20);
}

TEST_CASE("memory of the GPU is counted apart, and is that of a training there", "[train][profiler]") {
  const KeyAverages averages =
      key_averages({range("ProfilerStep#0", 0, 100), event("aten::empty", 10, 20), memory(12, 64),
                    on_gpu(memory(13, 1000)), on_gpu(memory(30, -400)), on_gpu(memory(200, 5))});
  const auto& row = row_of(averages, "aten::empty");
  CHECK(row.cpu_bytes == 64);
  CHECK(row.cuda_bytes == 1000);
  CHECK(row_of(averages, "ProfilerStep*").cuda_bytes == 600);
  CHECK(row_of(averages, "ProfilerStep*").self_cuda_bytes == -400);
  CHECK(row_of(averages, "[memory]").calls == 1);
  CHECK(row_of(averages, "[memory]").cuda_bytes == 5);
  CHECK(averages.steps[0].peak_bytes == 1000);
  REQUIRE(averages.memory.size() == 3);
  CHECK(averages.memory[1].bytes == 600);
  TracedEvent taken = range("h.0", 0, 100);
  CHECK(block_averages({taken, memory(12, 64), on_gpu(memory(13, 1000))}, {"h.0"}, {}).at(0).kept_bytes == 1000);
}

TEST_CASE("events that overlap in part are not parents, and one that crosses threads has no time of its own",
          "[train][profiler]") {
  TracedEvent wandering = event("wandering", 0, 50);
  wandering.end_thread = 2;
  const KeyAverages averages = key_averages({event("a", 0, 10), event("b", 5, 15), event("c", 6, 9), wandering});
  CHECK(row_of(averages, "a").self_cpu_us == 10);
  CHECK(row_of(averages, "b").self_cpu_us == 7);
  CHECK(row_of(averages, "wandering").cpu_us == 50);
  CHECK(row_of(averages, "wandering").self_cpu_us == 0);
}

TEST_CASE("an operation that only calls itself is counted once", "[train][profiler]") {
  const KeyAverages averages = key_averages(
      {event("aten::randperm", 0, 20), event("aten::randperm", 1, 19), event("aten::randperm", 2, 18),
       event("aten::empty", 3, 5), event("aten::add", 30, 40), event("aten::add", 31, 32), event("aten::add", 33, 34)});
  CHECK(row_of(averages, "aten::randperm").calls == 1);
  CHECK(row_of(averages, "aten::randperm").self_cpu_us == 18);
  CHECK(row_of(averages, "aten::add").calls == 3);  // two in one are two
  CHECK(row_of(averages, "aten::add").self_cpu_us == 10);
}

TEST_CASE("rows are grouped by shape; view operations are left out", "[train][profiler]") {
  TracedEvent small = event("aten::mm", 0, 1), large = event("aten::mm", 2, 5);
  small.shapes = "[[1, 2]]";
  large.shapes = "[[3, 4]]";
  small.flops = 10;
  large.flops = 20;
  TracedEvent again = large;
  again.start_ns += 10'000;
  again.end_ns += 10'000;
  const KeyAverages averages = key_averages({small, large, again, event("aten::is_leaf", 6, 7)});
  REQUIRE(averages.rows.size() == 2);
  CHECK(averages.rows[1].shapes == "[[3, 4]]");
  CHECK(averages.rows[1].calls == 2);
  CHECK(averages.rows[1].flops == 40);
}

TEST_CASE("memory counts for what lasts while it is taken", "[train][profiler]") {
  const KeyAverages averages = key_averages({
      range("ProfilerStep#0", 0, 100), event("aten::empty", 10, 20), memory(12, 64),
      memory(15, 32, 2),                // of another thread
      memory(30, -64), memory(200, 8),  // of nothing
  });
  CHECK(row_of(averages, "aten::empty").cpu_bytes == 96);
  CHECK(row_of(averages, "ProfilerStep*").cpu_bytes == 32);
  CHECK(row_of(averages, "ProfilerStep*").self_cpu_bytes == -64);
  CHECK(row_of(averages, "[memory]").calls == 1);
  CHECK(row_of(averages, "[memory]").cpu_bytes == 8);
  CHECK(averages.steps[0].peak_bytes == 96);
  REQUIRE(averages.memory.size() == 4);
  CHECK(averages.memory[1].bytes == 96);
  CHECK(averages.memory[1].ms == 0.015);
}

TEST_CASE("a long memory timeline keeps its peaks", "[train][profiler]") {
  std::vector<TracedEvent> events;
  for (std::int64_t i = 0; i < 5001; ++i)
    events.push_back(memory(i, i == 3333 ? 1'000'000 : i == 3334 ? -1'000'000 : 1));
  const auto points = key_averages(events).memory;
  CHECK(points.size() <= store::Profile::kMemoryPointsMax);
  std::int64_t most = 0;
  for (const auto& point : points) most = std::max(most, point.bytes);
  CHECK(most == 1'003'333);
}

TEST_CASE("a block's backward pass is that of the nodes it made", "[train][profiler]") {
  const std::vector<TracedEvent> events = {
      range("h.0", 0, 10),
      memory(5, 100),
      range("flatten", 10, 11),
      range("head", 11, 20),
      memory(12, 30),
      memory(19, -10),
      node("autograd::engine::evaluate_function: LossBackward", 30, 40, 9),
      node("autograd::engine::evaluate_function: AddmmBackward0", 40, 47, 7),
      node("AddmmBackward0", 41, 46, 7),
      node("autograd::engine::evaluate_function: GeluBackward0", 50, 53, 6),
      node("autograd::engine::evaluate_function: AddmmBackward0", 53, 58, 5),
      node("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", 58, 60, -1),
  };
  const auto blocks = block_averages(events, {"h.0", "flatten", "head"}, {{0, 5, 7}, {1, 7, 7}, {2, 7, 9}});
  REQUIRE(blocks.size() == 3);
  CHECK(blocks[0].forward_us == 10);
  CHECK(blocks[0].backward_us == 8);
  CHECK(blocks[0].kept_bytes == 100);
  CHECK(blocks[1].calls == 1);
  CHECK(blocks[1].backward_us == 0);
  CHECK(blocks[2].backward_us == 7);
  CHECK(blocks[2].kept_bytes == 20);
}

}  // namespace runner::train

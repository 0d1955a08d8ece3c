#include "runner/store/profile/profile.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace {

using namespace runner::store;

Profile small_profile() {
  Profile profile;
  profile.trace = "rank-0.1.pt.trace.json";
  profile.with_shapes = profile.with_memory = profile.with_flops = true;
  profile.model_flops = 6e6;
  profile.peak_flops = 4e9;
  profile.peak_of = "float32";
  profile.rows = {
      {.name = "ProfilerStep*", .shapes = "[]", .is_range = true, .calls = 2, .cpu_us = 4000, .self_cpu_us = 500},
      {.name = "aten::mm",
       .shapes = "[[8, 8], [8, 8]]",
       .calls = 3,
       .cpu_us = 1000,
       .self_cpu_us = 1000,
       .cpu_bytes = 2048,
       .self_cpu_bytes = 2048,
       .flops = 1'000'000},
      {.name = "aten::mm",
       .shapes = "[[8, 9], [9, 8]]",
       .calls = 1,
       .cpu_us = 2500,
       .self_cpu_us = 2500,
       .cpu_bytes = -512,
       .self_cpu_bytes = -512,
       .flops = 2'000'000}};
  profile.blocks = {{.name = "h.0", .calls = 4, .forward_us = 100, .backward_us = 300, .kept_bytes = 4096}};
  profile.steps = {{7, 1500, 0}, {8, 2500, 3 << 20}};
  profile.memory = {{0.5, 100}, {1.5, -20}};
  return profile;
}

/// The same on a GPU.
Profile gpu_profile() {
  Profile profile = small_profile();
  profile.with_cuda = true;
  profile.with_flops = profile.with_memory = false;
  profile.rows[0].cuda_us = profile.rows[1].cuda_us = profile.rows[1].self_cuda_us = 600;
  profile.rows[0].cuda_bytes = profile.rows[1].cuda_bytes = profile.rows[1].self_cuda_bytes = 4096;
  profile.rows.pop_back();
  profile.rows.push_back({.name = "gemm", .is_kernel = true, .calls = 6, .cuda_us = 600, .self_cuda_us = 600});
  profile.rows.push_back({.name = "Memset", .is_kernel = true, .calls = 2, .cuda_us = 200, .self_cuda_us = 200});
  profile.blocks[0].forward_cuda_us = 200;
  profile.blocks[0].backward_cuda_us = 400;
  return profile;
}

}  // namespace

TEST_CASE("a profile's table looks like torch.profiler's", "[store][profile]") {
  std::string rule(17, '-');
  for (int column = 0; column < 9; ++column) rule += "  ------------";
  rule += "  \n";
  const std::vector<std::string> lines = {
      "             Name    Self CPU %      Self CPU   CPU total %     CPU total  CPU time avg       CPU Mem  Self CPU "
      "Mem",
      "    # of Calls  Total MFLOPs  \n",
      "         aten::mm        87.50%       3.500ms        87.50%       3.500ms     875.000us       1.50 KB       "
      "1.50 KB",
      "             4         3.000  \n",
      "    ProfilerStep*        12.50%     500.000us       100.00%       4.000ms       2.000ms           0 B           "
      "0 B",
      "             2            --  \n"};
  CHECK(table_text(small_profile(), {}) == rule + lines[0] + lines[1] + rule + lines[2] + lines[3] + lines[4] +
                                               lines[5] + rule + "Self CPU time total: 4.000ms\n");
}

TEST_CASE("a profile of a GPU shows the time of kernels", "[store][profile]") {
  const std::string expected =
      "         gemm         0.00%       0.000us         0.00%       0.000us       0.000us     600.000us        75.00% "
      "    "
      "600.000us      100.000us             6  \n"
      "     aten::mm        66.67%       1.000ms        66.67%       1.000ms     333.333us     600.000us        75.00% "
      "    "
      "600.000us      200.000us             3  \n";
  const std::string text = table_text(gpu_profile(), {.sort_by = "self_cuda_time_total"});
  INFO(text);
  CHECK(text.find("  CPU time avg     Self CUDA   Self CUDA %    CUDA total  CUDA time avg    # of Calls  \n") !=
        std::string::npos);
  CHECK(text.find("CUDA Mem") == std::string::npos);
  CHECK(text.find("     aten::mm        66.67%") < text.find("         gemm "));  // as they were recorded
  CHECK(text.find(expected.substr(0, expected.find('\n') + 1)) != std::string::npos);
  CHECK(text.find(expected.substr(expected.find('\n') + 1)) != std::string::npos);
  CHECK(text.ends_with("Self CPU time total: 1.500ms\nSelf CUDA time total: 800.000us\n"));

  Profile profile = gpu_profile();
  profile.with_memory = profile.with_flops = true;
  const std::string whole = profile_text(profile, {.sort_by = "cuda_memory_usage"});
  INFO(whole);
  CHECK(whole.find("peak memory of the GPU 3.00 MB above") != std::string::npos);
  CHECK(whole.find("  Self CPU Mem      CUDA Mem  Self CUDA Mem    # of Calls") != std::string::npos);
  CHECK(whole.find("      CUDA fwd    CUDA fwd %      CUDA bwd    CUDA bwd %") != std::string::npos);
  CHECK(whole.find("     200.000us        25.00%     400.000us        50.00%       1.00 KB") != std::string::npos);
  // 1 MFLOP in the 600 us of its kernels.
  CHECK(whole.find("aten::mm: 1.67 GFLOP/s") != std::string::npos);
  CHECK(whole.find("roux env --measure") == std::string::npos);

  profile.peak_flops = 4e9;
  profile.peak_of = "bfloat16";
  CHECK(profile_text(profile, {}).find("peak: 4.00 GFLOP/s in bfloat16 matrix products, by the GPU's data sheet") !=
        std::string::npos);
}

TEST_CASE("a profile's rows are grouped, sorted and cut as asked", "[store][profile]") {
  const std::string text = table_text(small_profile(), {"count", 2, true});
  const auto first = text.find("[[8, 8], [8, 8]]"), second = text.find("ProfilerStep*");
  CHECK(first != std::string::npos);
  CHECK(first < second);
  CHECK(text.find("[[8, 9], [9, 8]]") == std::string::npos);
  CHECK(text.find("(1 more)\n") != std::string::npos);
  CHECK(text.find("Self CPU time total: 4.000ms\n") != std::string::npos);
}

TEST_CASE("a profile says what was reached of the machine's peak", "[store][profile]") {
  Profile profile = small_profile();
  std::string text = profile_text(profile, {});
  CHECK(text.starts_with("recorded 2 steps: 7 to 8, 2.000ms each, peak memory 3.00 MB above the start of a step\n"));
  // 6 MFLOP in 4 ms, and 3 MFLOP in 3.5 ms, of 4 GFLOP/s.
  CHECK(text.find("\nmodel: 1.50 GFLOP/s, 37.5 % of the peak\n") != std::string::npos);
  CHECK(text.find("aten::mm: 857 MFLOP/s, 21.4 % of the peak, 87.50% of the time\n") != std::string::npos);
  CHECK(text.find("peak: 4.00 GFLOP/s in float32 matrix products") != std::string::npos);
  CHECK(text.find(
            "         h.0     100.000us         2.50%     300.000us         7.50%       1.00 KB             4  \n") !=
        std::string::npos);
  profile.peak_flops = 0;
  CHECK(profile_text(profile, {}).find("peak: not measured on this machine") != std::string::npos);
}

TEST_CASE("a profile is read back as it was written; a damaged one says where", "[store][profile]") {
  const Profile profile = small_profile();
  const auto text = runner::core::to_json(to_node(profile), -1);
  auto back = profile_from_node(to_node(profile));
  REQUIRE(back);
  CHECK(runner::core::to_json(to_node(back.value()), -1) == text);

  const Profile of_gpu = gpu_profile();
  back = profile_from_node(to_node(of_gpu));
  REQUIRE(back);
  CHECK(runner::core::to_json(to_node(back.value()), -1) == runner::core::to_json(to_node(of_gpu), -1));
  CHECK(back.value().rows.back().is_kernel);
  CHECK(text.find("cuda") == std::string::npos);  // as versions before wrote it

  auto node = to_node(profile);
  node.find("key_averages")->items()[1].set("flops", runner::core::Node::string("many"));
  auto damaged = profile_from_node(node);
  REQUIRE_FALSE(damaged);
  CHECK(damaged.failure().message == "the profile's key_averages has no usable \"flops\"");
  node = to_node(profile);
  node.find("memory")->items()[0].items().pop_back();
  CHECK_FALSE(profile_from_node(node));
  CHECK_FALSE(profile_from_node(runner::core::Node::mapping()));
}

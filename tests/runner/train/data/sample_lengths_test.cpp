#include "runner/train/data/sample_lengths.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <vector>

#include "tests/components/data/building.h"
#include "tests/support/folder.h"

using runner::train::longest_batch;
using runner::train::mean_over_lengths;
using tests::good_data;

namespace {

double square(std::int64_t positions) { return static_cast<double>(positions * positions); }

}  // namespace

TEST_CASE("a batch is as long as its longest sample, and padded to a multiple", "[sample_lengths]") {
  const tests::Folder folder;
  folder.write("a.txt", "ab\nabcdef\nabcd\n");
  const auto lines = good_data("{type: text_lines, path: a.txt, max_seq_len: 100}");
  CHECK(lines->signature().max_length() == 100);
  CHECK(longest_batch(*lines, 1).max_length() == 6);
  CHECK(longest_batch(*lines, 4).max_length() == 8);
  CHECK(longest_batch(*lines, 256).max_length() == 256);
  CHECK(mean_over_lengths(*lines, square) == Approx((4.0 + 36.0 + 16.0) / 3.0));
}

TEST_CASE("windows of one length keep it", "[sample_lengths]") {
  const tests::Folder folder;
  folder.write("a.txt", "0123456789");
  const auto windows = good_data("{type: text, path: a.txt, max_seq_len: 4}");
  CHECK(longest_batch(*windows, 1).max_length() == 4);
  CHECK(mean_over_lengths(*windows, square) == 16.0);
}

TEST_CASE("close lengths share a call", "[sample_lengths]") {
  const tests::Folder folder;
  std::string text;
  for (int length = 1; length <= 1000; ++length) text += std::string(static_cast<std::size_t>(length), 'a') + "\n";
  folder.write("a.txt", text);
  const auto lines = good_data("{type: text_lines, path: a.txt, max_seq_len: 2000}");
  std::int64_t calls = 0;
  const double mean = mean_over_lengths(*lines, [&calls](std::int64_t positions) {
    ++calls;
    return square(positions);
  });
  CHECK(calls <= 65);
  CHECK(mean == Approx(1001.0 * 2001.0 / 6.0).epsilon(0.01));
}

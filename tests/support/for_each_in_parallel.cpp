#include "tests/support/for_each_in_parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

namespace tests {
namespace {

constexpr int kWorkers = 3;  // each waits for a program of its own most of the time

}  // namespace

std::vector<std::string> for_each_in_parallel(const std::vector<int>& points,
                                              const std::function<std::string(int)>& point) {
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::vector<std::string> problems;
  std::vector<std::thread> workers;
  for (int worker = 0; worker < kWorkers; ++worker) {
    workers.emplace_back([&] {
      for (std::size_t at = next++; at < points.size(); at = next++) {
        const int i = points[at];
        std::string problem;
        try {
          problem = point(i);
        } catch (const std::exception& error) {
          problem = error.what();
        }
        const std::lock_guard lock(mutex);
        if (!problem.empty()) problems.push_back("at call " + std::to_string(i) + ": " + problem);
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  std::sort(problems.begin(), problems.end());
  return problems;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

}  // namespace tests

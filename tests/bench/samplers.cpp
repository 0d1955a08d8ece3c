// What samplers find, and what a proposal costs, for tests/bench. One JSON line each.
//   bench_samplers best SAMPLER SEEDS TRIALS [FUNCTION]   {function: [the best value of each seed]}
//   bench_samplers cost SAMPLER TRIALS                    microseconds of a CPU for a proposal after this many
//   trials

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <limits>
#include <memory>
#include <numbers>
#include <string>
#include <vector>

#include "components/sampler/sampler.h"
#include "runner/core/diagnostics.h"
#include "runner/core/error.h"
#include "runner/registry/registry.h"
#include "runner/registry/validate.h"

namespace {

using components::sampler::Dimension;
using components::sampler::Observation;
using components::sampler::Point;
using components::sampler::Sampler;
using runner::core::Node;
using std::numbers::pi;

Dimension real(double min, double max, bool log = false) {
  Dimension d;
  d.min = min;
  d.max = max;
  d.log = log;
  return d;
}

Dimension integer(double min, double max, bool log = false) {
  Dimension d = real(min, max, log);
  d.kind = Dimension::Kind::kInteger;
  return d;
}

Dimension choice(std::int64_t count) {
  Dimension d;
  d.kind = Dimension::Kind::kChoice;
  d.choices = count;
  return d;
}

/// A function and what it is a function of; peers/samplers.py has the same ones.
struct Function {
  const char* name;
  std::vector<Dimension> dimensions;
  std::function<double(const Point&)> value;
  /// The choice that dimension 1 must be for each dimension; -1: any. Empty: all play a part.
  std::vector<double> when = {};
};

class FunctionSpace final : public components::sampler::Space {
 public:
  explicit FunctionSpace(const Function& function) : function_(function) {}
  const std::vector<Dimension>& dimensions() const override { return function_.dimensions; }
  bool is_active(const Point& point, std::size_t index) const override {
    return is_always_active(index) || point[1] == function_.when[index];
  }
  bool is_always_active(std::size_t index) const override {
    return function_.when.empty() || function_.when[index] < 0;
  }
  bool allows(const Point&) const override { return true; }
  runner::core::Result<Point> locate(const Node&) const override {
    return runner::core::Failure{"the points of a function have no paths"};
  }

 private:
  const Function& function_;
};

double square(double x) { return x * x; }

double branin(const Point& x) {
  return square(x[1] - 5.1 / (4 * pi * pi) * x[0] * x[0] + 5 / pi * x[0] - 6) +
         10 * (1 - 1 / (8 * pi)) * std::cos(x[0]) + 10;
}

constexpr double kHeights[] = {1.0, 1.2, 3.0, 3.2};

template <std::size_t kSize>
double hartmann(const Point& x, const double (&steepness)[4][kSize], const double (&centres)[4][kSize]) {
  double value = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    double sum = 0;
    for (std::size_t k = 0; k < kSize; ++k) sum += steepness[i][k] * square(x[k] - centres[i][k]);
    value -= kHeights[i] * std::exp(-sum);
  }
  return value;
}

double hartmann3(const Point& x) {
  static constexpr double kSteepness[4][3] = {{3, 10, 30}, {0.1, 10, 35}, {3, 10, 30}, {0.1, 10, 35}};
  static constexpr double kCentres[4][3] = {
      {0.3689, 0.1170, 0.2673}, {0.4699, 0.4387, 0.7470}, {0.1091, 0.8732, 0.5547}, {0.0381, 0.5743, 0.8828}};
  return hartmann(x, kSteepness, kCentres);
}

double hartmann6(const Point& x) {
  static constexpr double kSteepness[4][6] = {
      {10, 3, 17, 3.5, 1.7, 8}, {0.05, 10, 17, 0.1, 8, 14}, {3, 3.5, 1.7, 10, 17, 8}, {17, 8, 0.05, 10, 0.1, 14}};
  static constexpr double kCentres[4][6] = {{0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886},
                                            {0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991},
                                            {0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650},
                                            {0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381}};
  return hartmann(x, kSteepness, kCentres);
}

double rosenbrock(const Point& x) {
  double sum = 0;
  for (std::size_t i = 0; i + 1 < x.size(); ++i) sum += 100 * square(x[i + 1] - x[i] * x[i]) + square(1 - x[i]);
  return sum;
}

double ackley(const Point& x) {
  double squares = 0, waves = 0;
  for (const double v : x) {
    squares += v * v;
    waves += std::cos(2 * pi * v);
  }
  const auto n = static_cast<double>(x.size());
  return 20 + std::numbers::e - 20 * std::exp(-0.2 * std::sqrt(squares / n)) - std::exp(waves / n);
}

double rastrigin(const Point& x) {
  double sum = 0;
  for (const double v : x) sum += 10 + v * v - 10 * std::cos(2 * pi * v);
  return sum;
}

double levy(const Point& x) {
  std::vector<double> w;
  for (const double v : x) w.push_back(1 + (v - 1) / 4);
  double sum = square(std::sin(pi * w.front())) + square(w.back() - 1) * (1 + square(std::sin(2 * pi * w.back())));
  for (std::size_t i = 0; i + 1 < w.size(); ++i) sum += square(w[i] - 1) * (1 + 10 * square(std::sin(pi * w[i] + 1)));
  return sum;
}

double styblinski_tang(const Point& x) {
  double sum = 0;
  for (const double v : x) sum += v * v * v * v - 16 * v * v + 5 * v;
  return sum / 2;
}

/// As a small network answers to its hyperparameters: a rate, a share, a depth, a width and a choice.
double mixed(const Point& x) {
  static constexpr double kBestRate[] = {-3.0, -2.0, -4.0, -1.5}, kOffset[] = {0.0, 0.3, 0.15, 0.6};
  const auto kind = static_cast<std::size_t>(x[4]);
  const double share = x[1], depth = x[2], size = std::log2(x[3]) - 7;
  return square(std::log10(x[0]) - kBestRate[kind] + 0.3 * size) + kOffset[kind] +
         2 * square(share - 0.2 - 0.05 * depth) + 0.1 * std::abs(depth - 4) + 0.2 * size * size;
}

/// Three methods, each with parameters of its own beside a shared one.
double conditional(const Point& x) {
  if (x[1] == 0) return 0.2 + 0.3 * square(x[0] - 1) + 0.1 * square(x[2] - 2) + 0.1 * square(x[3] + 1 - 0.5 * x[2]);
  if (x[1] == 1) return 0.3 * square(x[0] + 0.5) + 0.5 * square(std::log10(x[4]) + 2) + 0.02 * square(x[5] - 13);
  return 0.5 + 0.1 * square(x[0] - x[6]) + std::abs(x[6] - 0.7);
}

std::vector<Dimension> reals(std::size_t count, double min, double max) { return {count, real(min, max)}; }

std::vector<Function> functions() {
  return {{"branin", {real(-5, 10), real(0, 15)}, branin},
          {"hartmann3", reals(3, 0, 1), hartmann3},
          {"hartmann6", reals(6, 0, 1), hartmann6},
          {"rosenbrock", reals(4, -5, 10), rosenbrock},
          {"ackley", reals(5, -32.768, 32.768), ackley},
          {"rastrigin", reals(4, -5.12, 5.12), rastrigin},
          {"levy", reals(4, -10, 10), levy},
          {"styblinski_tang", reals(4, -5, 5), styblinski_tang},
          {"mixed", {real(1e-5, 1e-1, true), real(0, 0.9), integer(1, 8), integer(8, 512, true), choice(4)}, mixed},
          {"conditional",
           {real(-2, 2), choice(3), real(-5, 5), real(-5, 5), real(1e-4, 1, true), integer(1, 20), real(0, 1)},
           conditional,
           {-1, -1, 0, 0, 1, 1, 2}}};
}

std::shared_ptr<Sampler> build(const std::string& name, const Function& function, std::uint64_t seed) {
  runner::core::Diagnostics diagnostics;
  const Node block = runner::registry::validate_component(Node::string(name), "sampler", "sampler",
                                                          runner::registry::Registry::builtin(), diagnostics);
  if (diagnostics.has_errors()) throw runner::core::RunError("no sampler is called " + name);
  return components::sampler::build(block, {std::make_shared<FunctionSpace>(function), seed});
}

/// A study; what was tried.
std::vector<Observation> study(const Sampler& sampler, const Function& function, std::int64_t trials) {
  std::vector<Observation> observations;
  while (static_cast<std::int64_t>(observations.size()) < trials) {
    const Point point = sampler.propose(observations).value();
    observations.push_back({point, Observation::State::kComplete, {function.value(point)}});
  }
  return observations;
}

void best(const std::string& name, std::int64_t seeds, std::int64_t trials, const std::string& only) {
  std::string line = "{";
  for (const Function& function : functions()) {
    if (!only.empty() && only != function.name) continue;
    line += std::string(line.size() > 1 ? ", " : "") + "\"" + function.name + "\": [";
    for (std::int64_t seed = 0; seed < seeds; ++seed) {
      double least = std::numeric_limits<double>::infinity();
      for (const Observation& one : study(*build(name, function, static_cast<std::uint64_t>(seed)), function, trials)) {
        least = std::min(least, one.values.front());
      }
      char text[32];
      std::snprintf(text, sizeof text, "%s%.10g", seed > 0 ? ", " : "", least);
      line += text;
    }
    line += "]";
  }
  std::printf("%s}\n", line.c_str());
}

void cost(const std::string& name, std::int64_t trials) {
  std::string line = "{";
  for (const Function& function : functions()) {
    std::vector<Observation> observations = study(*build("random", function, 0), function, trials);
    const auto sampler = build(name, function, 0);
    constexpr int kProposals = 20;
    const std::clock_t begin = std::clock();
    for (int i = 0; i < kProposals; ++i) {
      const Point point = sampler->propose(observations).value();
      observations.push_back({point, Observation::State::kComplete, {function.value(point)}});
    }
    const double spent_us = static_cast<double>(std::clock() - begin) * 1e6 / CLOCKS_PER_SEC;
    char text[64];
    std::snprintf(text, sizeof text, "%s\"%s\": %.1f", line.size() > 1 ? ", " : "", function.name,
                  spent_us / kProposals);
    line += text;
  }
  std::printf("%s}\n", line.c_str());
}

int run(const std::vector<std::string>& words) {
  const auto number = [&](std::size_t i) { return std::atoll(words[i].c_str()); };
  if (words.size() >= 4 && words.size() <= 5 && words[0] == "best") {
    return best(words[1], number(2), number(3), words.size() == 5 ? words[4] : ""), 0;
  }
  if (words.size() == 3 && words[0] == "cost") return cost(words[1], number(2)), 0;
  std::fprintf(stderr, "usage: bench_samplers best SAMPLER SEEDS TRIALS [FUNCTION] | cost SAMPLER TRIALS\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run({argv + 1, argv + argc});
  } catch (const runner::core::RunError& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}

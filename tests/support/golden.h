#pragma once

#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace tests::golden {

using Json = nlohmann::json;

/// One case of a topic's file: `{kind, name, input, expected}`.
struct Case {
  std::string kind, name;
  Json input, expected;
};

/// Every case of a topic in the folder ROUX_GOLDEN_DIR (tests/golden/vectors when it is not set): of each *.json file
/// there whose `topic` says so. None in the committed folder fails the test; none in another folder is printed.
std::vector<Case> read_topic(const std::string& topic);

/// A case whose objects keep the order that they have in the file.
using OrderedJson = nlohmann::ordered_json;
struct OrderedCase {
  std::string kind, name;
  OrderedJson input, expected;
  std::shared_ptr<const OrderedJson> fields;  ///< of the file: what its words mean, and what cases share
};
std::vector<OrderedCase> read_ordered_topic(const std::string& topic);

/// The topics of the files in that folder, sorted.
std::vector<std::string> topics();

/// Whether tests/golden/exceptions.json names a topic that no test reads.
bool is_unread_topic(const std::string& topic);

/// Lists of lists of numbers as one row; texts such as "inf", "-inf" and "nan" are numbers.
std::vector<double> numbers(const Json& json);

/// How far a value may be from the expected one.
struct Tolerance {
  double relative = 1e-6, absolute = 1e-7;
  bool of_largest = false;  ///< `relative` to the largest expected entry instead of to each
};

/// "" when all agree, else the count and the first few: `logits: 2 of 24 differ: [3] is 0.5, expected 0.25; ...`.
std::string differences(const std::string& what, std::span<const double> got, const Json& expected,
                        const Tolerance& tolerance);

/// Counts what a reader checked and what it cannot check.
class Coverage {
 public:
  explicit Coverage(std::string topic) : topic_(std::move(topic)) {}
  void checked(const std::string& kind) { ++checked_[kind]; }
  /// `what` is what is not there or differs on purpose, such as `optimizer Lion`; "": the whole kind.
  void not_covered(const std::string& kind, const std::string& what = "") { ++missing_[{kind, what}]; }
  /// Prints both counts. Fails the test unless tests/golden/exceptions.json lists everything that was not covered and,
  /// for the committed vectors, nothing else of these kinds.
  void finish() const;

 private:
  std::string topic_;
  std::map<std::string, int> checked_;
  std::map<std::pair<std::string, std::string>, int> missing_;
};

/// Fails the test unless `got` agrees.
void check_row(std::span<const double> got, const Json& expected, const Tolerance& tolerance);

}  // namespace tests::golden

namespace tests {

using GoldenCase = golden::Case;

/// Runs `check` over a topic. It returns false for a case of a kind that it does not cover; see Coverage. Cases that
/// are not `chosen` are another test's.
void for_each_case(
    const std::string& topic, const std::function<bool(const GoldenCase&)>& check,
    const std::function<bool(const GoldenCase&)>& chosen = [](const GoldenCase&) { return true; });

inline std::vector<double> flatten(const golden::Json& json) { return golden::numbers(json); }

/// `got`: one number or a vector of them.
template <typename Got>
void check_near(const Got& got, const golden::Json& expected, double relative, double absolute) {
  if constexpr (std::is_arithmetic_v<Got>) {
    const double value = static_cast<double>(got);
    golden::check_row({&value, 1}, expected, {relative, absolute});
  } else {
    golden::check_row(std::vector<double>(got.begin(), got.end()), expected, {relative, absolute});
  }
}

}  // namespace tests

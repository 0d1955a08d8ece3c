#include "tests/support/golden.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

namespace tests::golden {
namespace {

constexpr int kShownMax = 5;

std::filesystem::path folder() {
  const char* chosen = std::getenv("ROUX_GOLDEN_DIR");
  if (chosen != nullptr && *chosen != '\0') return chosen;
  return std::filesystem::path(ROUX_SOURCE_DIR) / "tests" / "golden" / "vectors";
}

void flatten(const Json& json, std::vector<double>& row) {
  if (json.is_array()) {
    for (const Json& item : json) flatten(item, row);
  } else if (json.is_object()) {
    flatten(json.contains("data") ? json.at("data") : json.at("t"), row);
  } else if (json.is_string()) {
    row.push_back(std::stod(json.get<std::string>()));  // "inf", "-inf" and "nan", too
  } else {
    row.push_back(json.get<double>());
  }
}

bool agree(double got, double expected, double allowed) {
  if (std::isnan(expected)) return std::isnan(got);
  if (std::isinf(expected)) return got == expected;
  return std::abs(got - expected) <= allowed;
}

}  // namespace

std::vector<Case> read_topic(const std::string& topic) {
  std::vector<Case> cases;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder())) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const auto& path : files) {
    std::ifstream stream(path);
    const Json file = Json::parse(stream);
    if (file.at("topic") != topic) continue;
    for (const Json& item : file.at("cases")) {
      cases.push_back({item.at("kind"), item.at("name"), item.at("input"), item.at("expected")});
    }
  }
  INFO("golden vectors of " << topic << " in " << folder());
  REQUIRE_FALSE(cases.empty());
  return cases;
}

std::vector<double> numbers(const Json& json) {
  std::vector<double> row;
  flatten(json, row);
  return row;
}

std::string differences(const std::string& what, std::span<const double> got, const Json& expected_json,
                        const Tolerance& tolerance) {
  const std::vector<double> expected = numbers(expected_json);
  std::ostringstream text;
  text.precision(9);
  if (got.size() != expected.size()) {
    text << what << ": " << got.size() << " values, expected " << expected.size();
    return text.str();
  }
  double largest = 0.0;
  for (const double value : expected) largest = std::max(largest, std::isfinite(value) ? std::abs(value) : 0.0);
  int wrong = 0;
  std::ostringstream shown;
  shown.precision(9);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double scale = tolerance.of_largest ? largest : std::abs(expected[i]);
    if (agree(got[i], expected[i], tolerance.relative * scale + tolerance.absolute)) continue;
    if (++wrong <= kShownMax) shown << "; [" << i << "] is " << got[i] << ", expected " << expected[i];
  }
  if (wrong == 0) return "";
  text << what << ": " << wrong << " of " << expected.size() << " differ" << shown.str();
  return text.str();
}

Coverage::~Coverage() {
  for (const auto& [kind, count] : checked_)
    std::cout << topic_ << ": checked: kind=" << kind << ", n=" << count << "\n";
  for (const auto& [kind_and_what, count] : missing_) {
    std::cout << topic_ << ": not covered: kind=" << kind_and_what.first << ", " << kind_and_what.second
              << ", n=" << count << "\n";
  }
}

void check_row(std::span<const double> got, const Json& expected, const Tolerance& tolerance) {
  CHECK(differences("values", got, expected, tolerance) == "");
}

int Coverage::checked_count() const {
  int count = 0;
  for (const auto& item : checked_) count += item.second;
  return count;
}

}  // namespace tests::golden

namespace tests {

void for_each_case(const std::string& topic, const std::function<bool(const GoldenCase&)>& check,
                   const std::function<bool(const GoldenCase&)>& chosen) {
  golden::Coverage coverage(topic);
  for (const GoldenCase& golden : golden::read_topic(topic)) {
    if (!chosen(golden)) continue;
    INFO(golden.kind << " " << golden.name);
    if (check(golden)) {
      coverage.checked(golden.kind);
    } else {
      coverage.not_covered(golden.kind, "no component");
    }
  }
  CHECK(coverage.checked_count() > 0);
}

}  // namespace tests

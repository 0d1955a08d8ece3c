#include "tests/support/golden.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>

#include "tests/support/paths.h"

namespace tests::golden {
namespace {

constexpr int kShownMax = 5;

std::filesystem::path committed() { return std::filesystem::path(source_dir()) / "tests" / "golden" / "vectors"; }

std::filesystem::path folder() {
  const char* chosen = std::getenv("ROUX_GOLDEN_DIR");
  return chosen != nullptr && *chosen != '\0' ? std::filesystem::path(chosen) : committed();
}

bool is_committed() { return folder() == committed(); }

/// The files of vectors, by name.
template <typename Read>
std::vector<Read> files() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder())) {
    if (entry.path().extension() == ".json") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Read> all;
  for (const auto& path : paths) {
    std::ifstream stream(path);
    all.push_back(Read::parse(stream));
  }
  return all;
}

/// A list of `{topic, kind, what, why}`: a whole topic has no `kind`, a whole kind no `what`.
const Json& exceptions() {
  static const Json list = [] {
    std::ifstream stream(std::filesystem::path(source_dir()) / "tests" / "golden" / "exceptions.json");
    return Json::parse(stream);
  }();
  return list;
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

void require_some(const std::string& topic, bool has_none) {
  INFO("golden vectors of " << topic << " in " << folder());
  if (is_committed()) REQUIRE_FALSE(has_none);
  if (has_none) std::cout << topic << ": no vectors in " << folder() << "\n";
}

bool agree(double got, double expected, double allowed) {
  if (std::isnan(expected)) return std::isnan(got);
  if (std::isinf(expected)) return got == expected;
  return std::abs(got - expected) <= allowed;
}

}  // namespace

std::vector<Case> read_topic(const std::string& topic) {
  std::vector<Case> cases;
  for (const Json& file : files<Json>()) {
    if (file.at("topic") != topic) continue;
    for (const Json& item : file.at("cases")) {
      cases.push_back({item.at("kind"), item.at("name"), item.at("input"), item.at("expected")});
    }
  }
  require_some(topic, cases.empty());
  return cases;
}

std::vector<OrderedCase> read_ordered_topic(const std::string& topic) {
  std::vector<OrderedCase> cases;
  for (const OrderedJson& file : files<OrderedJson>()) {
    if (file.at("topic") != topic) continue;
    const auto fields = std::make_shared<const OrderedJson>(file.at("fields"));
    for (const OrderedJson& item : file.at("cases")) {
      cases.push_back({item.at("kind"), item.at("name"), item.at("input"), item.at("expected"), fields});
    }
  }
  require_some(topic, cases.empty());
  return cases;
}

std::vector<std::string> topics() {
  std::set<std::string> found;
  for (const Json& file : files<Json>()) found.insert(file.at("topic"));
  return {found.begin(), found.end()};
}

bool is_unread_topic(const std::string& topic) {
  return std::any_of(exceptions().begin(), exceptions().end(), [&topic](const Json& exception) {
    return exception.at("topic") == topic && !exception.contains("kind");
  });
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

void Coverage::finish() const {
  std::set<std::string> kinds, found, listed;
  const auto name = [](const std::string& kind, const std::string& what) {
    return kind + (what.empty() ? "" : ", ") + what;
  };
  for (const auto& [kind, count] : checked_) {
    std::cout << topic_ << ": checked: kind=" << kind << ", n=" << count << "\n";
    kinds.insert(kind);
  }
  for (const auto& [kind_and_what, count] : missing_) {
    found.insert(name(kind_and_what.first, kind_and_what.second));
    kinds.insert(kind_and_what.first);
    std::cout << topic_ << ": not covered: kind=" << name(kind_and_what.first, kind_and_what.second) << ", n=" << count
              << "\n";
  }
  for (const Json& exception : exceptions()) {
    if (exception.at("topic") != topic_ || !kinds.contains(exception.value("kind", ""))) continue;
    const std::string one = name(exception.at("kind"), exception.value("what", ""));
    if (is_committed() || found.contains(one)) listed.insert(one);
  }
  INFO("not covered by the reader of " << topic_ << ", and the exceptions that tests/golden/exceptions.json lists");
  CHECK(found == listed);
  if (is_committed()) CHECK_FALSE(checked_.empty());
}

void check_row(std::span<const double> got, const Json& expected, const Tolerance& tolerance) {
  CHECK(differences("values", got, expected, tolerance) == "");
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
      coverage.not_covered(golden.kind);
    }
  }
  coverage.finish();
}

}  // namespace tests

#include "trackers/io/owned_folder.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "runner/core/platform/files.h"
#include "tests/support/folder.h"
#include "tests/trackers/followed_run.h"
#include "trackers/io/tracker_data.h"

namespace fs = std::filesystem;
using trackers::OwnedFolder;

namespace {

std::string error_of(const OwnedFolder& folder, bool begins = true) {
  try {
    begins ? folder.begin() : folder.check();
  } catch (const trackers::TrackerError& error) {
    CHECK(error.remedy() == trackers::TrackerError::Remedy::kPause);
    CHECK(error.hint() == "give each its own folder or key, or move that one away");
    return error.what();
  }
  return "";
}

std::string text_of(const std::string& path) {
  const auto text = runner::core::read_file(path, 1000);
  return text ? text.value() : "(none)";
}

}  // namespace

TEST_CASE("a tracker deletes what it has in its folder, and nothing of another", "[trackers][files]") {
  const tests::Folder here;
  const OwnedFolder first{"a", "run-1", "tool", false};
  CHECK(error_of(first) == "");
  here.write("a/messages", "1");
  here.write("a.zip", "1");
  CHECK(error_of(first, false) == "");
  CHECK(error_of({"a", "run-1", "tool 2", false}) == "a belongs to another run or tracker");
  CHECK(error_of({"a", "run-2", "tool", false}) == "a belongs to another run or tracker");
  CHECK(error_of({"a", "run-2", "tool", false}, false) == "a has been taken over by another run or tracker");
  CHECK(text_of("a/messages") == "1");
  CHECK(text_of("a.zip") == "1");

  CHECK(error_of(first) == "");  // after a rewind
  CHECK(text_of("a/messages") == "(none)");
  CHECK(text_of("a.zip") == "(none)");

  here.write("b/mine", "1");
  here.write("c.zip", "1");
  CHECK(error_of({"b", "run-1", "tool", false}) == "b or its .zip is not of this run");
  CHECK(error_of({"c", "run-1", "tool", false}) == "c or its .zip is not of this run");
  CHECK(text_of("b/mine") == "1");
  CHECK(text_of("c.zip") == "1");
  CHECK(error_of({"b", "run-1", "tool", true}) == "");  // of a version that wrote no owner
  CHECK(text_of("b/mine") == "(none)");
  CHECK(std::distance(fs::directory_iterator("."), {}) == 3);  // a, b, c.zip
}

TEST_CASE("Comet's and ClearML's folder is left alone where it is another's", "[trackers][files]") {
  const tests::Folder here;
  tracker_tests::FollowedRun f;
  f.log(1, 0.5);
  f.commit();
  const std::string key(32, '0');
  here.write(key + "/mine", "1");
  const std::string with_key = R"({"type": "comet_ml", "offline_directory": ".", "experiment_key": ")" + key + "\"}";
  CHECK(f.follow(with_key).problem == fs::absolute(".").string() + "/" + key + " or its .zip is not of this run");
  CHECK(text_of(key + "/mine") == "1");
  struct Case {
    const char *block, *first, *second;
  };
  for (const Case& c : {Case{R"({"type": "comet_ml", "offline_directory": "comet"})", "comet", "comet 2"},
                        Case{R"({"type": "clearml", "dir": "clearml"})", "clearml", "clearml 2"}}) {
    INFO(c.block);
    CHECK(f.follow(c.block, false, c.first).problem.empty());
    CHECK(f.follow(c.block, false, c.second).problem.find("belongs to another run or tracker") != std::string::npos);
  }
}

#include "runner/hub/answers.h"

#include <catch2/catch.hpp>

using namespace runner::hub;
using runner::net::HttpAnswer;

TEST_CASE("a redirect keeps to its scheme", "[hub]") {
  struct Case {
    const char *from, *location, *target;  ///< "": refused
  };
  static constexpr Case cases[] = {
      {"https://hub/a/b?c=/d", "/e", "https://hub/e"},
      {"https://hub/a/b?c=/d", "e", "https://hub/a/e"},
      {"https://hub", "e", "https://hub/e"},
      {"https://hub/a/b?c=/d", "?e=1", "https://hub/a/b?e=1"},
      {"https://hub/a/b?c=d", "?", "https://hub/a/b?"},
      {"https://hub?c=/d", "?e=1", "https://hub/?e=1"},
      {"https://hub?c=/d", "e", "https://hub/e"},
      {"https://hub/a/b#c", "?e=1", "https://hub/a/b?e=1"},
      {"https://hub/a", "//other/e", "https://other/e"},
      {"https://hub/a", "https://other/e?u=http://x", "https://other/e?u=http://x"},
      {"https://hub/a", "/e?u=http://x", "https://hub/e?u=http://x"},
      {"http://hub/a", "https://other/e", "https://other/e"},
      {"https://hub/a", "http://hub/a", ""},
      {"http://hub/a", "ftp://hub/a", ""},
      {"http://hub/a", "file:///etc/passwd", ""},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.from << " " << c.location) {
      CHECK(redirect_target(c.from, c.location).value_or("") == c.target);
    }
  }
}

TEST_CASE("Content-Range says where a part begins and how long the whole is", "[hub]") {
  struct Case {
    const char* header;
    std::int64_t begin, total;
  };
  static constexpr Case cases[] = {
      {"bytes 100-199/300", 100, 300},
      {"bytes 0-0/*", 0, -1},
      {"bytes */300", -1, 300},
      {"bytes 100-199", 100, -1},
      {"bytes -5-7/9", -1, 9},
      {"items 1-2/3", -1, -1},
      {"bytes 1x-2/3", -1, 3},
      {"bytes ", -1, -1},
      {"", -1, -1},
      {"bytes 1/2-3", -1, -1},
      {"bytes 1-2/3 ", 1, -1},
      {"bytes 99999999999999999999-1/99999999999999999999", -1, -1},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.header) {
      const HttpAnswer answer{206, "", {{"content-range", c.header}}};
      CHECK(content_range(answer).begin == c.begin);
      CHECK(content_range(answer).total == c.total);
      CHECK(whole_bytes(answer) == c.total);
    }
  }
  CHECK(whole_bytes({200, "", {{"content-length", "7"}}}) == 7);
  CHECK(whole_bytes({200, "", {{"content-length", "-7"}}}) == -1);
  CHECK(whole_bytes({200, "", {}}) == -1);
}

TEST_CASE("a listing is what the Hub says of a revision, and nothing around it", "[hub]") {
  const std::string sha(40, 'a');
  struct Case {
    std::string json;
    std::optional<std::vector<std::string>> files;
  };
  const std::string of_commit = R"({"sha": ")" + sha + R"(", )";
  const Case cases[] = {
      {of_commit + R"("siblings": []})", {{}}},
      {R"({"siblings": [{"size": 1, "rfilename": "a/b"}], "sha": ")" + sha + "\"}", {{"a/b"}}},
      {of_commit +
           R"("siblings": [{"rfilename": "../a"}, {"rfilename": "c"}, {"rfilename": 1}, 2, ["rfilename", "d"]]})",
       {{"c"}}},
      {of_commit + R"("siblings": [{"lfs": {"rfilename": "d"}, "rfilename": "e"}, [{"rfilename": "f"}]]})", {{"e"}}},
      {of_commit + R"("siblings": [], "x": {"siblings": [{"rfilename": "g"}]}, "y": [{"rfilename": "h"}]})", {{}}},
      {of_commit + R"("siblings": {"rfilename": "a"}})", {}},
      {R"({"x": {"sha": ")" + sha + R"("}, "siblings": []})", {}},
      {R"({"sha": 1, "siblings": []})", {}},
      {R"([{"sha": "a"}])", {}},
      {"7", {}},
      {"\"a\"", {}},
      {"", {}},
      {of_commit + R"("siblings": [)", {}},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.json) {
      const auto listing = parse_listing(c.json);
      CHECK(listing.has_value() == c.files.has_value());
      if (listing && c.files) CHECK(listing->files == *c.files);
      if (listing) CHECK(listing->commit == sha);
    }
  }
}

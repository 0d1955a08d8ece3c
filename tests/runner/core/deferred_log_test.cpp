#include "runner/core/deferred_log.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "runner/core/log.h"
#include "runner/core/platform/files.h"

namespace runner::core {

TEST_CASE("a held log has no file before a warning, and then what came before", "[core][log]") {
  std::string folder = (std::filesystem::temp_directory_path() / "roux-log-XXXXXX").string();
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  const std::string path = folder + "/logs/rank-0.log";
  defer_log_file(path);
  flush_log();
  CHECK_FALSE(std::filesystem::exists(folder + "/logs"));
  log_info("the first line");
  log_warning("the second line");
  set_log_file("");
  const std::string text = read_file(path, 1 << 20).value();
  CHECK(text.find(" info the first line\n") < text.find(" warning the second line\n"));
  CHECK(text.ends_with(" warning the second line\n"));
  std::filesystem::remove_all(folder);
}

}  // namespace runner::core

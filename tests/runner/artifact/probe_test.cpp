#include "runner/artifact/probe.h"

#include <catch2/catch.hpp>

#include <filesystem>

#include "tests/support/disk/faulty_io.h"
#include "tests/support/temp_dir.h"

namespace runner::artifact {
namespace {

namespace fs = std::filesystem;
using tests::FaultyIo;
using tests::TempDir;

TEST_CASE("a probe leaves nothing, whatever the disk says to it", "[artifact][probe]") {
  const TempDir stash(TempDir::On::kMemory);
  int refused = 0;
  for (int call = 1; call < 40; ++call) {
    const TempDir dir(TempDir::On::kMemory);
    FaultyIo io(stash.path(), FaultyIo::Fault::kDiskError, call);
    const core::Result<void> probed = attempt([&] { probe_folder(dir.path(), 1 << 20, io); });
    CAPTURE(call);
    CHECK(probed.ok() != io.injected());
    if (io.injected()) {
      ++refused;
      CHECK(probed.failure().exit_code == core::kExitResumable);
      CHECK(probed.failure().message.find(dir.path()) != std::string::npos);
    }
    CHECK(fs::is_empty(dir.path()));
  }
  CHECK(refused >= 10);
}

TEST_CASE("free space is that of the nearest folder that is there", "[artifact][probe]") {
  const TempDir dir;
  CHECK(free_bytes_at(dir / "not/yet/made") > 0);
  CHECK(free_bytes_at("neither-this") > 0);
}

}  // namespace
}  // namespace runner::artifact

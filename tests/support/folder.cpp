#include "tests/support/folder.h"

#include <stdlib.h>

#include <fstream>
#include <stdexcept>

namespace tests {

namespace fs = std::filesystem;

Folder::Folder() : before_(fs::current_path()) {
  std::string name = (fs::temp_directory_path() / "roux-test-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot create a folder for the test: " + name);
  path_ = name;
  fs::current_path(path_);
}

Folder::~Folder() {
  std::error_code ignored;
  fs::current_path(before_, ignored);
  fs::remove_all(path_, ignored);
}

void Folder::write(const std::string& path, const std::string& content) const {
  const fs::path whole = path_ / path;
  fs::create_directories(whole.parent_path());
  std::ofstream(whole, std::ios::binary) << content;
}

}  // namespace tests

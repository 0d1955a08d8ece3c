#pragma once

// LibTorch contains Gloo but ships none of its headers. These declarations are what <ProcessGroupGloo.hpp> needs; the
// headers that it includes are empty files, made by the build (runner/cmake/dependencies.cmake).

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace gloo {

class Context {
 public:
  void setTimeout(std::chrono::milliseconds);
};

namespace transport {
class Device;
struct UnboundBuffer {
  virtual ~UnboundBuffer();
};
}  // namespace transport

namespace rendezvous {
class Store {
 public:
  virtual ~Store();
  virtual void set(const std::string&, const std::vector<char>&) = 0;
  virtual std::vector<char> get(const std::string&) = 0;
  virtual void wait(const std::vector<std::string>&) = 0;
  virtual void wait(const std::vector<std::string>&, const std::chrono::milliseconds&) = 0;
};
}  // namespace rendezvous

}  // namespace gloo

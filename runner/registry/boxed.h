#pragma once

#include <cstddef>
#include <memory>
#include <utility>

namespace runner::registry {

/// A value whose type only those need to know who read it: a declaration suffices to hold, copy, move or destroy one.
/// A copy is a value of its own; assigning a T keeps its address. Like C++26's std::indirect, but it may be empty.
template <class T>
class Boxed {
 public:
  Boxed(std::nullptr_t) {}
  explicit Boxed(T value)
      : value_(std::make_shared<T>(std::move(value))), copy_([](const T& from) { return std::make_shared<T>(from); }) {}
  Boxed(const Boxed& other) : value_(other.copied()), copy_(other.copy_) {}
  Boxed(Boxed&&) noexcept = default;
  Boxed& operator=(Boxed other) noexcept {
    value_ = std::move(other.value_);
    copy_ = other.copy_;
    return *this;
  }
  Boxed& operator=(T value) {
    if (value_ == nullptr) return *this = Boxed(std::move(value));
    *value_ = std::move(value);
    return *this;
  }

  explicit operator bool() const { return value_ != nullptr; }
  T* operator->() { return value_.get(); }
  const T* operator->() const { return value_.get(); }
  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }

 private:
  std::shared_ptr<T> copied() const { return value_ == nullptr ? nullptr : copy_(*value_); }

  std::shared_ptr<T> value_;  ///< never shared: its deleter is what knows the type
  std::shared_ptr<T> (*copy_)(const T&) = nullptr;
};

}  // namespace runner::registry

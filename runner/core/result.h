#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "runner/core/error.h"

namespace runner::core {

/// An error of the environment that the caller can act on.
struct Failure {
  std::string message;  ///< Names the path, host or key; lower case, no full stop.
  std::string hint = {};
  int exit_code = kExitFailed;  ///< exit status if not handled
  std::string word = {};        ///< what the hint says to write in place of the text that was read; "" for nothing
};

/// A value, or the reason why there is none. `value()` on a failure throws RunError with the failure's message.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}            // NOLINT: implicit by intent
  Result(Failure failure) : state_(std::in_place_index<1>, std::move(failure)) {}  // NOLINT: implicit by intent

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& value() & { return checked(), std::get<0>(state_); }
  const T& value() const& { return checked(), std::get<0>(state_); }
  T&& value() && { return checked(), std::get<0>(std::move(state_)); }
  T value_or(T other) const& { return ok() ? std::get<0>(state_) : std::move(other); }
  T value_or(T other) && { return ok() ? std::get<0>(std::move(state_)) : std::move(other); }
  const Failure& failure() const { return std::get<1>(state_); }

 private:
  void checked() const {
    if (!ok()) throw RunError(failure().message, failure().hint, failure().exit_code);
  }
  std::variant<T, Failure> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Failure failure) : failure_(std::move(failure)) {}  // NOLINT: implicit by intent

  bool ok() const { return !failure_.has_value(); }
  explicit operator bool() const { return ok(); }
  void value() const {
    if (failure_) throw RunError(failure_->message, failure_->hint, failure_->exit_code);
  }
  const Failure& failure() const { return *failure_; }

 private:
  std::optional<Failure> failure_;
};

/// Runs `body` and returns its RunError as a Failure, for callers that can act on it.
template <typename Body>
auto attempt(Body body) -> Result<decltype(body())> {
  try {
    if constexpr (std::is_void_v<decltype(body())>) {
      body();
      return {};
    } else {
      return body();
    }
  } catch (const RunError& error) {
    return Failure{error.what(), error.hint(), error.exit_code()};
  }
}

}  // namespace runner::core

// SPDX-License-Identifier: GPL-2.0
// A value or the reason why there is none: an errno for the program, one sentence and the guilty
// item for the person. Exceptions of libraries end where the library is called and become an Error.
#pragma once

#include <cassert>
#include <string>
#include <utility>
#include <variant>

namespace qgpu {

struct Error {
  int err = 0;           // errno that a caller may branch on, never 0
  std::string sentence;  // for a person, without a final full stop
  std::string item;      // what is guilty: an attribute, a key, a path; may be empty

  // "ENOSPC: sentence (item)"
  std::string text() const;
};

// "ENOENT"; "errno 4711" for a number without a name.
std::string errnoName(int err);

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Error error) : value_(std::move(error)) {}

  bool ok() const { return value_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T &value() {
    assert(ok());
    return std::get<0>(value_);
  }
  const T &value() const {
    assert(ok());
    return std::get<0>(value_);
  }
  T &operator*() { return value(); }
  const T &operator*() const { return value(); }
  T *operator->() { return &value(); }
  const T *operator->() const { return &value(); }

  const Error &error() const {
    assert(!ok());
    return std::get<1>(value_);
  }

 private:
  std::variant<T, Error> value_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  bool ok() const { return error_.err == 0; }
  explicit operator bool() const { return ok(); }
  const Error &error() const {
    assert(!ok());
    return error_;
  }

 private:
  Error error_;
};

}  // namespace qgpu

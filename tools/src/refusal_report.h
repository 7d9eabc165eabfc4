// What `lrpc run` says of the system calls that a sealed program was refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "lrpc/sealed.h"

namespace lrpc::tools {

/// Prints each name when it is first refused, and at the end how often it was. A program can make up numbers without
/// end, so only so many names are listed and remembered; of the others there is one count. Not thread-safe.
class RefusalReport {
 public:
  /// As many as a program that is not hostile may well be refused: Linux has fewer than 500 system calls.
  static constexpr std::size_t kMaxNames = 64;

  /// `print`: takes a line.
  explicit RefusalReport(std::function<void(std::string_view)> print) : print_(std::move(print)) {}

  void refused(const Refusal& refusal);
  /// After the last refusal.
  void finish();

 private:
  const std::function<void(std::string_view)> print_;
  std::map<std::string, std::uint64_t> counts_;
  std::uint64_t not_listed_ = 0;
};

}  // namespace lrpc::tools

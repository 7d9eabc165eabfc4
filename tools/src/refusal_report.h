// How `lrpc run` reports the system calls that a sealed program was refused.
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

/// Prints each name when it is first refused, and at the end how often it was. A program can invent any number of
/// system calls, so only kMaxNames names are listed and remembered; the others are counted together. Not thread-safe.
class RefusalReport {
 public:
  /// Enough for any program that is not hostile: Linux has fewer than 500 system calls.
  static constexpr std::size_t kMaxNames = 64;

  /// `print` prints a line.
  explicit RefusalReport(std::function<void(std::string_view)> print) : print_(std::move(print)) {}

  void refused(const Refusal& refusal);
  /// Call it after the last refusal.
  void finish();

 private:
  const std::function<void(std::string_view)> print_;
  std::map<std::string, std::uint64_t> counts_;
  std::uint64_t not_listed_ = 0;
};

}  // namespace lrpc::tools

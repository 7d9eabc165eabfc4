// A file of records that is only ever appended to: what was appended is there after a crash.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "lrpc/server.h"

namespace replicas {

/// Used by one thread at a time.
class Journal {
 public:
  static constexpr std::size_t kMostRecord = 4096;

  /// Opens or makes the file, which nobody else may have open, and gives `replay` each record in the order in which
  /// they were appended. What a crash has left of the last one is cut off. When it returns, all is on the disk.
  /// Errors: system_error, with the file's name: also if the file is damaged, or somebody else has it.
  static lrpc::Result<Journal> open(const std::string& path, const std::function<void(std::string_view)>& replay);

  /// Returns when the record, of at most kMostRecord bytes, is on the disk. Blocks for the disk. Errors: system_error:
  /// it may be there or not, and nothing can be appended any more.
  [[nodiscard]] lrpc::Status append(std::string_view record);

 private:
  explicit Journal(lrpc::UniqueFd file) noexcept : file_(std::move(file)) {}
  lrpc::UniqueFd file_;
  bool failed_ = false;
};

}  // namespace replicas

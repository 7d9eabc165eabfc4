// An append-only file of records that survive a crash.
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

  /// Opens or creates the file and locks it, and passes each record to `replay`, in the order of the appends. Cuts off
  /// a last record that a crash has torn. When it returns, everything is on the disk. Errors: system_error, with the
  /// file's name; also if the file is damaged, or another process has it open.
  static lrpc::Result<Journal> open(const std::string& path, const std::function<void(std::string_view)>& replay);

  /// Returns when the record, of at most kMostRecord bytes, is on the disk; blocks for that. Errors: system_error: the
  /// record may or may not be on the disk, and no more can be appended.
  [[nodiscard]] lrpc::Status append(std::string_view record);

 private:
  explicit Journal(lrpc::UniqueFd file) noexcept : file_(std::move(file)) {}
  lrpc::UniqueFd file_;
  bool failed_ = false;
};

}  // namespace replicas

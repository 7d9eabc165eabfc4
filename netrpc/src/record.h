// Records in a stream of bytes (RFC 5531 §11): each is one or more fragments. A mark in front of each fragment has its
// length and whether it is the last one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "from_malloc.h"

namespace lrpc::netrpc {

inline constexpr std::size_t kRecordMark = 4;
/// The mark of a record that is one fragment of `size` bytes. Precondition: size < 2^31.
[[nodiscard]] constexpr std::uint32_t record_mark(std::size_t size) noexcept {
  return std::uint32_t{1} << 31 | static_cast<std::uint32_t>(size);
}

/// Assembles records from hostile bytes, which may arrive in pieces of any size. Memory grows with the bytes that have
/// arrived, not with the length in a mark; the bound is `longest` bytes.
class RecordReader {
 public:
  explicit RecordReader(std::size_t longest) noexcept : longest_(longest) {}

  enum class State : std::uint8_t {
    more,    ///< All of `bytes` is consumed; the record is incomplete.
    record,  ///< record() is complete; `bytes` is the rest.
    wrong,   ///< The bytes are no records, or one is too long. Permanent.
  };
  /// Consumes bytes from the front of `bytes`. Throws std::bad_alloc.
  [[nodiscard]] State feed(std::span<const std::byte>& bytes);
  /// After State::record, until the next feed().
  [[nodiscard]] std::span<const std::byte> record() const noexcept { return record_; }

 private:
  std::size_t longest_;
  std::vector<std::byte, FromMalloc<std::byte>> record_;
  std::byte mark_[kRecordMark] = {};
  std::size_t marked_ = 0;  ///< Bytes of the mark that have arrived.
  std::size_t left_ = 0;    ///< Bytes of the fragment that are missing.
  bool last_ = false;
  bool whole_ = false;
  bool wrong_ = false;
};

}  // namespace lrpc::netrpc

// Records in a stream of bytes (RFC 5531 §11): each is one or more fragments, and in front of a fragment stand its
// length and whether it is the last one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "from_malloc.h"

namespace lrpc::netrpc {

inline constexpr std::size_t kRecordMark = 4;
/// In front of a record that is one fragment of `size` bytes. Precondition: size < 2^31.
[[nodiscard]] constexpr std::uint32_t record_mark(std::size_t size) noexcept {
  return std::uint32_t{1} << 31 | static_cast<std::uint32_t>(size);
}

/// Puts records together from hostile bytes, in whatever pieces they come. Memory grows with what has arrived, and not
/// with what a mark promises; up to `longest`.
class RecordReader {
 public:
  explicit RecordReader(std::size_t longest) noexcept : longest_(longest) {}

  enum class State : std::uint8_t {
    more,    ///< All of `bytes` is taken, and a record is not whole.
    record,  ///< record() is; `bytes` has the rest.
    wrong,   ///< These are no records, or one is too long. For good.
  };
  /// Takes bytes off the front of `bytes`. Throws std::bad_alloc.
  [[nodiscard]] State feed(std::span<const std::byte>& bytes);
  /// After State::record, until the next feed().
  [[nodiscard]] std::span<const std::byte> record() const noexcept { return record_; }

 private:
  std::size_t longest_;
  std::vector<std::byte, FromMalloc<std::byte>> record_;
  std::byte mark_[kRecordMark] = {};
  std::size_t marked_ = 0;  ///< Bytes of the mark that are there.
  std::size_t left_ = 0;    ///< Bytes of the fragment that are not.
  bool last_ = false;
  bool whole_ = false;
  bool wrong_ = false;
};

}  // namespace lrpc::netrpc

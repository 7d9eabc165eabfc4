// Bytes and meaning are two types: headers are written and read field by field, in network byte order, without padding.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "lrpc/netrpc/address.h"

namespace lrpc::netrpc {

/// Writes fields one after another. The caller ensures that there is room: a header's size is a constant.
class WireWriter {
 public:
  explicit WireWriter(std::byte* to) noexcept : at_(to) {}

  template <std::unsigned_integral T>
  WireWriter& put(T value) noexcept {
    // One store, as WireReader has one load.
    if constexpr (std::endian::native == std::endian::little) {
      if constexpr (sizeof(T) == 2) value = static_cast<T>(__builtin_bswap16(value));
      if constexpr (sizeof(T) == 4) value = static_cast<T>(__builtin_bswap32(value));
      if constexpr (sizeof(T) == 8) value = static_cast<T>(__builtin_bswap64(value));
    }
    std::memcpy(at_, &value, sizeof value);
    at_ += sizeof value;
    return *this;
  }
  WireWriter& put(HostAddress host) noexcept { return put(host.value); }
  template <std::size_t N>
  WireWriter& put(const std::array<std::uint8_t, N>& bytes) noexcept {
    std::memcpy(at_, bytes.data(), N);
    at_ += N;
    return *this;
  }
  /// Several, in this order.
  template <class First, class Second, class... More>
  WireWriter& put(const First& first, const Second& second, const More&... more) noexcept {
    put(first).put(second);
    (put(more), ...);
    return *this;
  }
  [[nodiscard]] std::byte* at() const noexcept { return at_; }

 private:
  std::byte* at_;
};

/// Reads what WireWriter wrote. The caller has checked that there are enough bytes.
class WireReader {
 public:
  explicit WireReader(const std::byte* from) noexcept : at_(from) {}

  template <std::unsigned_integral T>
  [[nodiscard]] T get() noexcept {
    // One load: compilers do not merge the loads of single bytes here, and headers have many fields.
    T value;
    std::memcpy(&value, at_, sizeof value);
    at_ += sizeof value;
    if constexpr (std::endian::native == std::endian::big || sizeof(T) == 1) return value;
    if constexpr (sizeof(T) == 2) return static_cast<T>(__builtin_bswap16(value));
    if constexpr (sizeof(T) == 4) return static_cast<T>(__builtin_bswap32(value));
    if constexpr (sizeof(T) == 8) return static_cast<T>(__builtin_bswap64(value));
  }
  [[nodiscard]] HostAddress get_host() noexcept { return {get<std::uint32_t>()}; }
  template <std::unsigned_integral T>
  void get(T& value) noexcept {
    value = get<T>();
  }
  void get(HostAddress& host) noexcept { host = get_host(); }
  template <std::size_t N>
  void get(std::array<std::uint8_t, N>& bytes) noexcept {
    std::memcpy(bytes.data(), at_, N);
    at_ += N;
  }
  /// Several, in this order.
  template <class First, class Second, class... More>
  void get(First& first, Second& second, More&... more) noexcept {
    get(first);
    get(second);
    (get(more), ...);
  }
  [[nodiscard]] const std::byte* at() const noexcept { return at_; }

 private:
  const std::byte* at_;
};

/// How far the serial number `a` is ahead of `b`, also across the wrap-around.
[[nodiscard]] constexpr std::int32_t ahead(std::uint32_t a, std::uint32_t b) noexcept {
  return static_cast<std::int32_t>(a - b);
}

}  // namespace lrpc::netrpc

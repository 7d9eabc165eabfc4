// The C++ types of the values that an interface file can declare, and the copies between them and an A-stack image.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace lrpc {

namespace detail {
[[noreturn, gnu::cold]] void throw_text_too_long(std::size_t size, std::size_t most);
}

/// `string<N>`: at most N bytes of text held inline; no allocation. N ≤ 65,535. Any bytes, NUL included.
template <std::size_t N>
class String {
 public:
  static constexpr std::size_t kCapacity = N;
  /// Writes only the length; in a constant expression all bytes, which a constant must have.
  constexpr String() noexcept {
    if (std::is_constant_evaluated()) {
      for (char& byte : bytes_) byte = 0;
    }
  }
  /// Throws std::length_error if `text` is longer than N. For text of unknown length use assign() or cut().
  String(std::string_view text) {  // NOLINT: implicit by design
    if (!assign(text)) [[unlikely]]
      detail::throw_text_too_long(text.size(), N);
  }
  String(const char* text) : String(std::string_view(text)) {}         // NOLINT: implicit by design
  String(const std::string& text) : String(std::string_view(text)) {}  // NOLINT: implicit by design
  /// The first N bytes of `text`, or all if it has fewer; may end within a UTF-8 character.
  [[nodiscard]] static String cut(std::string_view text) noexcept {
    String first;
    (void)first.assign(text.substr(0, N));
    return first;
  }
  String(const String& other) noexcept { (void)assign(other.view()); }
  String& operator=(const String& other) noexcept {
    if (this != &other) (void)assign(other.view());
    return *this;
  }

  /// False, and unchanged, if `text` is longer than N.
  [[nodiscard]] bool assign(std::string_view text) noexcept {
    if (text.size() > N) return false;
    if (!text.empty()) std::memmove(bytes_, text.data(), text.size());  // data() of an empty text may be null
    size_ = static_cast<std::uint32_t>(text.size());
    return true;
  }
  [[nodiscard]] std::string_view view() const noexcept {
    if (size_ > N) __builtin_unreachable();  // the invariant, so that the compiler can bound copies of this text
    return {bytes_, size_};
  }
  operator std::string_view() const noexcept { return view(); }  // NOLINT: implicit by design
  [[nodiscard]] std::string str() const { return std::string(view()); }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }

 private:
  std::uint32_t size_ = 0;
  char bytes_[N == 0 ? 1 : N];
};

/// Texts are equal if their bytes are equal, and their order is that of their bytes, as unsigned numbers; their bounds
/// do not count. The second operator of each kind takes all that converts to std::string_view. All are templates, so
/// that no argument converts to String, which would be ambiguous.
template <std::size_t A, std::size_t B>
[[nodiscard]] bool operator==(const String<A>& a, const String<B>& b) noexcept {
  return a.view() == b.view();
}
template <std::size_t N>
[[nodiscard]] bool operator==(const String<N>& a, std::string_view b) noexcept {
  return a.view() == b;
}
template <std::size_t A, std::size_t B>
[[nodiscard]] std::strong_ordering operator<=>(const String<A>& a, const String<B>& b) noexcept {
  return a.view().compare(b.view()) <=> 0;
}
template <std::size_t N>
[[nodiscard]] std::strong_ordering operator<=>(const String<N>& a, std::string_view b) noexcept {
  return a.view().compare(b) <=> 0;
}

/// An array, or an array of arrays, of which each element (or inner array) is `value`: what generated types begin with
/// where zeros would not conform.
template <class Array, class Value>
[[nodiscard]] constexpr Array filled(Value value) noexcept {
  using Element = typename Array::value_type;
  Array array{};
  if constexpr (requires { typename Element::value_type; } && !std::is_same_v<Value, Element>) {
    array.fill(filled<Element>(value));
  } else {
    array.fill(static_cast<Element>(value));
  }
  return array;
}

/// `bytes<N>` that a procedure returns or changes: a view of memory that it does not own, with a size that may change
/// up to its capacity. At the client it views the caller's destination. In a server's procedure a result views the
/// A-stack or its tail, from where the client copies it (LRPC §3.5). An inout parameter does so only if it is
/// `uninterpreted`; otherwise it views a private copy.
class Buffer {
 public:
  constexpr Buffer() noexcept = default;
  /// A destination of `memory.size()` bytes, empty so far.
  constexpr Buffer(std::span<std::byte> memory) noexcept  // NOLINT: implicit by design
      : data_(memory.data()), capacity_(memory.size()) {}
  /// A buffer that already holds `size` bytes (for inout). Precondition: size ≤ memory.size().
  constexpr Buffer(std::span<std::byte> memory, std::size_t size) noexcept
      : data_(memory.data()), size_(size), capacity_(memory.size()) {}

  [[nodiscard]] constexpr std::byte* data() const noexcept { return data_; }
  [[nodiscard]] constexpr std::size_t size() const noexcept { return size_; }
  [[nodiscard]] constexpr std::size_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] constexpr std::span<std::byte> contents() const noexcept { return {data_, size_}; }
  [[nodiscard]] constexpr std::span<std::byte> room() const noexcept { return {data_, capacity_}; }
  /// False, and unchanged, if `size` exceeds the capacity.
  [[nodiscard]] constexpr bool resize(std::size_t size) noexcept {
    if (size > capacity_) return false;
    size_ = size;
    return true;
  }
  /// Replaces the contents. False, and unchanged, if they do not fit.
  [[nodiscard]] bool assign(std::span<const std::byte> bytes) noexcept {
    if (bytes.size() > capacity_) return false;
    if (!bytes.empty()) std::memmove(data_, bytes.data(), bytes.size());
    size_ = bytes.size();
    return true;
  }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

/// A typed handle: names an object that the server holds for this binding. Only the binding that got it can use it.
/// Tag::kTag is the type's number in its interface. The value 0 is never valid.
template <class Tag>
struct Handle {
  using TagType = Tag;
  std::uint64_t value = 0;
  friend bool operator==(Handle, Handle) = default;
  explicit operator bool() const noexcept { return value != 0; }
};

/// All copies of generated stubs are made by the functions below. The CopyCode is the paper's code (Table III: A, E or
/// F). A test build counts copies by it; other builds compile it away.
enum class CopyCode : char { A = 'A', E = 'E', F = 'F' };

#ifdef LRPC_COUNT_COPIES
struct CopyCounters {
  std::uint64_t copies = 0;
  std::uint64_t bytes = 0;
};
/// Counters of this process, indexed by code - 'A'. Only in builds of the copy-counting test.
inline std::array<CopyCounters, 26> copy_counters{};
inline void count_copy(CopyCode code, std::size_t bytes) noexcept {
  auto& counter = copy_counters[static_cast<std::size_t>(static_cast<char>(code) - 'A')];
  ++counter.copies;
  counter.bytes += bytes;
}
#else
constexpr void count_copy(CopyCode /*code*/, std::size_t /*bytes*/) noexcept {}
#endif

template <CopyCode Code>
inline void copy_bytes(void* to, const void* from, std::size_t size) noexcept {
  count_copy(Code, size);
  std::memcpy(to, from, size);
}
/// Stores an integer, floating or enum value at its little-endian place in an image.
template <CopyCode Code, class T>
requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) inline void put_scalar(std::byte* to, T value) noexcept {
  static_assert(std::endian::native == std::endian::little, "big-endian hosts need a swap here");
  count_copy(Code, sizeof(T));
  std::memcpy(to, &value, sizeof(T));
}
/// Loads such a value exactly once: volatile keeps the compiler from reading the shared image again after a check.
template <CopyCode Code, class T>
requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) [[nodiscard]] inline T
    get_scalar(const std::byte* from) noexcept {
  count_copy(Code, sizeof(T));
  if constexpr (std::is_same_v<T, bool>) {
    return *reinterpret_cast<const volatile std::uint8_t*>(from) != 0;
  } else if constexpr (std::is_enum_v<T>) {
    return static_cast<T>(*reinterpret_cast<const volatile std::underlying_type_t<T>*>(from));
  } else {
    return *reinterpret_cast<const volatile T*>(from);
  }
}

/// Loads a bool once. False if the peer wrote anything but 0 or 1.
template <CopyCode Code>
[[nodiscard]] inline bool get_bool(const std::byte* from, bool& out) noexcept {
  const auto number = get_scalar<Code, std::uint8_t>(from);
  out = number == 1;
  return number <= 1;
}

/// Writes a string inside a record or array: a length word and N bytes. Bytes after the text are zeroed, so that
/// nothing of an earlier call is sent.
template <CopyCode Code, std::size_t N>
inline void put_string_field(std::byte* to, const String<N>& text) noexcept {
  constexpr std::size_t kRoom = (N + 3) / 4 * 4;
  put_scalar<Code>(to, static_cast<std::uint32_t>(text.size()));
  copy_bytes<Code>(to + 4, text.view().data(), text.size());
  std::memset(to + 4 + text.size(), 0, kRoom - text.size());
}
/// Loads such a string: the length once, then that many bytes. False if the peer's length exceeds the bound.
template <CopyCode Code, std::size_t N>
[[nodiscard]] inline bool get_string_field(const std::byte* from, String<N>& out) noexcept {
  const auto size = get_scalar<Code, std::uint32_t>(from);
  if (size > N) return false;
  count_copy(Code, size);
  return out.assign({reinterpret_cast<const char*>(from + 4), size});
}

/// Call after copies of blocks: the compiler must complete them here, and not read the shared image again later.
[[gnu::always_inline]] inline void copies_are_made() noexcept { std::atomic_signal_fence(std::memory_order_seq_cst); }

}  // namespace lrpc

// Fuzzing an interface's entry stubs: what `lrpc-stubgen --fuzz` generates for. Not for programs that serve.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "lrpc/detail/server/call_context.h"
#include "lrpc/detail/shim/call/pdl.h"
#include "lrpc/detail/shim/call/value.h"

namespace lrpc::fuzz {

/// Where a handle lies in the image of a procedure.
struct HandlePlace {
  std::uint16_t procedure = 0;
  std::uint32_t offset = 0;
  std::uint32_t tag = 0;
  bool result = false;
};

/// Runs entry stubs as the call path does, on a private A-stack whose image and tail end where the declaration says, so
/// that AddressSanitizer sees every step outside. One object is one binding, with its handles; not thread-safe.
///
/// An input is a sequence of calls, at most kMaxCalls: byte: procedure (two bytes, if there are more than 256); byte:
/// what is made of lengths and handles; then the image, as many bytes as the procedure has; two bytes: how much goes to
/// the tail; these bytes. Behind the end all is zero. What choose() and interfere() take comes out of the same input.
///
/// Ends the program, with the reason on the standard error, when a stub returns a status that does not exist, or
/// results that break their own bounds.
class EntryFuzzer {
 public:
  static constexpr int kMaxCalls = 32;

  /// All of it is the caller's and must outlive this.
  EntryFuzzer(const Pdl& pdl, std::span<const EntryStub> stubs, void* implementation,
              std::span<const HandlePlace> handles);
  EntryFuzzer(const EntryFuzzer&) = delete;
  EntryFuzzer& operator=(const EntryFuzzer&) = delete;
  ~EntryFuzzer();

  void run(std::span<const std::byte> input);

  /// How many calls came as far as their procedure's results, or to an error that it raised.
  [[nodiscard]] std::uint64_t returned() const noexcept;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

// For implementations, while a stub runs under an EntryFuzzer of this thread.

/// A number below `bound` (≥ 1) that the input chooses.
[[nodiscard]] std::size_t choose(std::size_t bound);
/// Sometimes rewrites image and tail, as a client may while its call is executed.
void interfere(CallContext& context);
/// Prints `what` and ends the program.
[[noreturn]] void fail(const char* what);

/// Reads every byte.
void look_at_bytes(std::span<const std::byte> bytes);

/// Reads every byte of an argument.
template <class T>
void look_at(const T& value) {
  if constexpr (std::is_same_v<T, Buffer>) {
    look_at_bytes(value.contents());
  } else if constexpr (std::is_convertible_v<const T&, std::span<const std::byte>> && !std::is_array_v<T>) {
    look_at_bytes(value);
  } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    const std::string_view text = value;
    look_at_bytes(std::as_bytes(std::span(text.data(), text.size())));
  } else {
    look_at_bytes(std::as_bytes(std::span(&value, 1)));
  }
}

/// Gives a result of bytes a size that the input chooses, and writes all of it.
void fill(Buffer& buffer);

/// A text of a length that the input chooses: none, one, or all that fits.
template <std::size_t N>
[[nodiscard]] String<N> text() {
  constexpr char kFull[4] = {'t', 'e', 'x', 't'};
  const std::size_t chosen = choose(4);
  if (chosen == 0) return {};
  std::string all(chosen == 1 ? std::min<std::size_t>(1, N) : N, ' ');
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = kFull[i % sizeof kFull];
  return String<N>(all);
}

}  // namespace lrpc::fuzz

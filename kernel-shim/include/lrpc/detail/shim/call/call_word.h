// The call word: one atomic word per A-stack, by which the two sides hand a call to each other (docs/CALL_WORD.md).
#pragma once

#include <atomic>
#include <cstdint>

namespace lrpc::shim {

/// Whose turn it is. A peer may write any other bit pattern: it counts as "not my turn".
enum class Turn : std::uint8_t {
  returned = 0,   ///< The client's turn: no call is outstanding (all zero is "never called").
  called = 1,     ///< The server's turn: a call waits to be claimed, or is being executed.
  abandoned = 2,  ///< The caller no longer waits; the A-stack is quarantined until the server returns it.
};

/// A private copy of a call word. The peer can change the word itself at any time: load it once, then use the copy.
///
///   bits  0..1   turn
///   bit   2      a caller sleeps on the word         (set by the client, while called or abandoned)
///   bit   3      the E-stack is parked on the word   (set by the server, while returned)
///   bit   4      revoked: one side found the other dead; nobody may sleep on this word any more
///   bit   5      the caller yields its processor,    (set by the client with CALLED, a hint)
///                or would if the E-stack sat there
///   bit   6      the call carries a deadline         (set by the client with CALLED; the slot has the time left)
///   bits  8..31  generation, modulo 2^24 (the full one is in the private linkage records)
///   bits 32..47  called: procedure identifier        returned: status
///   bits 48..63  called: the processor of the caller, a hint        returned: zero
///
/// The low half is the futex word (little-endian). It has everything on which a decision to sleep depends.
class CallWord {
 public:
  static constexpr std::uint64_t kTurnMask = 0x3;
  static constexpr std::uint64_t kCallerSleeps = 1U << 2;
  static constexpr std::uint64_t kEStackParked = 1U << 3;
  static constexpr std::uint64_t kRevoked = 1U << 4;
  static constexpr std::uint64_t kCallerYields = 1U << 5;
  static constexpr std::uint64_t kLimited = 1U << 6;
  static constexpr unsigned kGenerationShift = 8;
  static constexpr std::uint64_t kGenerationMask = 0xff'ffff;

  constexpr CallWord() noexcept = default;
  constexpr explicit CallWord(std::uint64_t bits) noexcept : bits_(bits) {}

  [[nodiscard]] static constexpr CallWord called(std::uint64_t generation, std::uint16_t procedure,
                                                 std::uint16_t processor) noexcept {
    return CallWord(futex_half(Turn::called, generation) | std::uint64_t{procedure} << 32 |
                    std::uint64_t{processor} << 48);
  }
  /// The same from `returned`, whose low half is that of RETURNED(generation); its high half is ignored.
  [[nodiscard]] static constexpr CallWord called_after(std::uint64_t returned, std::uint16_t procedure,
                                                       std::uint16_t processor) noexcept {
    static_assert(static_cast<std::uint64_t>(Turn::returned) == 0);
    // The parts share no bits, so a sum joins them: one instruction for three, where the compiler takes two for |.
    return CallWord((std::uint64_t{processor} << 48) + static_cast<std::uint32_t>(returned) +
                    ((std::uint64_t{procedure} << 32) + static_cast<std::uint64_t>(Turn::called)));
  }
  [[nodiscard]] static constexpr CallWord returned(std::uint64_t generation, std::uint16_t status) noexcept {
    return CallWord(futex_half(Turn::returned, generation) | std::uint64_t{status} << 32);
  }

  [[nodiscard]] constexpr std::uint64_t bits() const noexcept { return bits_; }
  [[nodiscard]] constexpr std::uint32_t futex_value() const noexcept { return static_cast<std::uint32_t>(bits_); }
  [[nodiscard]] constexpr std::uint16_t procedure() const noexcept { return static_cast<std::uint16_t>(bits_ >> 32); }
  [[nodiscard]] constexpr std::uint16_t status() const noexcept { return static_cast<std::uint16_t>(bits_ >> 32); }
  [[nodiscard]] constexpr std::uint16_t processor() const noexcept { return static_cast<std::uint16_t>(bits_ >> 48); }
  [[nodiscard]] constexpr bool caller_sleeps() const noexcept { return (bits_ & kCallerSleeps) != 0; }
  [[nodiscard]] constexpr bool caller_yields() const noexcept { return (bits_ & kCallerYields) != 0; }
  [[nodiscard]] constexpr bool estack_parked() const noexcept { return (bits_ & kEStackParked) != 0; }
  [[nodiscard]] constexpr bool revoked() const noexcept { return (bits_ & kRevoked) != 0; }
  [[nodiscard]] constexpr bool limited() const noexcept { return (bits_ & kLimited) != 0; }
  [[nodiscard]] constexpr CallWord with(std::uint64_t flags) const noexcept { return CallWord(bits_ | flags); }

  /// True if it is this turn of this generation; flags are ignored.
  [[nodiscard]] constexpr bool is(Turn turn, std::uint64_t generation) const noexcept {
    return same_turn(futex_half(turn, generation));
  }
  /// The same, with turn and generation in `bits` as in a word. The other bits are not compared.
  [[nodiscard]] constexpr bool same_turn(std::uint64_t bits) const noexcept {
    return ((bits_ ^ bits) & (kTurnMask | kGenerationMask << kGenerationShift)) == 0;
  }

  /// True if it is the return of the call that was rung with `called`.
  [[nodiscard]] constexpr bool returns(CallWord called) const noexcept {
    return same_turn(called.bits_ - static_cast<std::uint64_t>(Turn::called) +
                     static_cast<std::uint64_t>(Turn::returned));
  }
  /// True if its futex half is `half`, with no flag set: the common case of same_turn(), in fewer instructions.
  [[nodiscard]] constexpr bool is_plain(std::uint64_t half) const noexcept {
    return futex_value() == static_cast<std::uint32_t>(half);
  }
  /// The same, and its upper half is zero, which is the status of success in RETURNED. One comparison.
  [[nodiscard]] constexpr bool is_plain_success(std::uint64_t half) const noexcept {
    return bits_ == static_cast<std::uint32_t>(half);
  }

  friend constexpr bool operator==(CallWord, CallWord) = default;

 private:
  static constexpr std::uint64_t futex_half(Turn turn, std::uint64_t generation) noexcept {
    return static_cast<std::uint64_t>(turn) | (generation & kGenerationMask) << kGenerationShift;
  }
  std::uint64_t bits_ = 0;
};

/// The status in a returned word.
///   0            the procedure returned
///   1 .. 0xff    it raised the error with this index (from 1) in its `raises` list
///   0x8000 | e   it did not return: Errc e (the check ladder refused, an exception escaped, ...)
///   0xc000 | e   it returned Errc e with a text, which lies on the A-stack (told_text.h)
namespace call_status {
inline constexpr std::uint16_t kFailed = 0x8000;
inline constexpr std::uint16_t kTold = 0x4000;  ///< Only together with kFailed.
/// Whether the status says that a text lies on the A-stack.
[[nodiscard]] constexpr bool told(std::uint16_t status) noexcept {
  return (status & (kFailed | kTold)) == (kFailed | kTold);
}
}  // namespace call_status

/// The head of each A-stack slot in a region. The argument image follows at offset sizeof(AStackHead). The head and the
/// first 48 bytes of the image share a cache line, so a small call moves one line each way.
struct AStackHead {
  std::atomic<std::uint64_t> word;  ///< The call word.
  /// A hint from the server (PolledHint): not zero while one of its pollers scans this word.
  std::atomic<std::uint32_t> polled;
  /// A hint from the server (EStackHint): not zero while an E-stack is associated. The caller then need not ring the
  /// bell: an E-stack that does not sleep on the word is awake. A false hint costs the server's own caller one bounded
  /// sleep.
  std::atomic<std::uint32_t> attached;
};
static_assert(sizeof(AStackHead) == 16 && std::atomic<std::uint64_t>::is_always_lock_free);

/// The last word of each slot, far from the first cache line. For a call with a deadline: the nanoseconds that were
/// left when the call was rung. A span and not a moment, because two domains may have different clocks.
using AStackLimit = std::atomic<std::uint64_t>;

}  // namespace lrpc::shim

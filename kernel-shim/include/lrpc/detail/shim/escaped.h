// Exceptions that escape from a function of the program which a thread of this library has called: a procedure, a hook.
// The library catches them there and prints one line to stderr.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

namespace lrpc::shim {

/// The text of the exception that is being handled, valid until its handler ends. Precondition: there is one.
[[nodiscard]] std::string_view words_of_exception() noexcept;

/// Prints the lines of one source of exceptions, but only the first ten: a peer that can make a program throw may do so
/// for ever. Thread-safe; never allocates.
class EscapedExceptions {
 public:
  static constexpr std::uint32_t kPrinted = 10;

  [[nodiscard]] bool silent() const noexcept { return printed_.load(std::memory_order_relaxed) >= kPrinted; }
  /// Where the exception comes from: "Files", ".", "Open".
  struct From {
    std::string_view first;
    std::string_view between = {};
    std::string_view second = {};
  };
  /// Prints "lrpc: an exception escaped FROM: WORDS". WORDS is the text of the exception that is being handled: at most
  /// 500 bytes, without control characters. The last line says that no more of `whose` are printed.
  void print(const From& from, std::string_view whose) noexcept;

 private:
  std::atomic<std::uint32_t> printed_{0};  ///< Stops at the limit, so it never wraps around.
};

}  // namespace lrpc::shim

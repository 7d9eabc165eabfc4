// Exceptions that leave a function of the program's which a thread of this library has called: a procedure, a hook.
// They end there, and one line on stderr says so.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

namespace lrpc::shim {

/// What the exception that is being handled says, as long as it is being handled. Precondition: one is.
[[nodiscard]] std::string_view words_of_exception() noexcept;

/// The lines of one source of exceptions: the first ten are printed, for whoever makes a program throw may do so for
/// ever. Thread-safe; never allocates.
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
  /// Prints "lrpc: an exception escaped FROM: WORDS", where the exception that is being handled says WORDS: at most 500
  /// bytes, without control characters. The last line says that no more of `whose` are printed.
  void print(const From& from, std::string_view whose) noexcept;

 private:
  std::atomic<std::uint32_t> printed_{0};  ///< It stops, so that it never wraps around.
};

}  // namespace lrpc::shim

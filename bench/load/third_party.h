// What our calls cost others: how long an unrelated process takes for its work.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "core/child.h"
#include "report/histogram.h"

namespace lrpc::bench {

/// A process that does the same piece of work again and again, and records how long each piece took. Started from the
/// bench's own process.
class ThirdParty {
 public:
  static constexpr std::size_t kBooks = 3;
  /// Wakes every millisecond and computes for 200 µs (if undisturbed). Records the time from when the wake-up was due
  /// to the end of the work.
  static Result<ThirdParty> start(const Seat& seat);
  /// A build: compiles a small file with cc(1) again and again, each time in new processes. Records how long each
  /// compilation takes, some 25 ms. Compiles once before it returns. Errors: not_supported if that compilation fails.
  static Result<ThirdParty> start_build(const Seat& seat);

  /// From now on the pieces of work count in book `index`; with kBooks they count in none.
  void open_book(std::size_t index) noexcept { desk_->book.store(index, std::memory_order_release); }
  /// The times of the pieces, in nanoseconds.
  [[nodiscard]] const Histogram& book(std::size_t index) const noexcept { return desk_->books[index]; }

 private:
  struct Desk {
    std::atomic<std::size_t> book;
    std::array<Histogram, kBooks> books;
  };
  explicit ThirdParty(Shared<Desk> desk) noexcept : desk_(std::move(desk)) {}
  static Result<ThirdParty> create();
  /// Does `work`, and records how long after `due` it was done. Returns whether the work succeeded.
  template <class Work>
  static bool note(Desk& desk, std::int64_t due, Work&& work);
  [[noreturn]] static void work_periodically(std::uint64_t turns, Desk& desk) noexcept;

  Shared<Desk> desk_;
  Child process_;
};

}  // namespace lrpc::bench

// What our calls cost somebody else: a periodic process that has nothing to do with them, and its p99.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "child.h"
#include "histogram.h"

namespace lrpc::bench {

/// A process that wakes every millisecond, computes for 200 µs (what takes that long when nobody disturbs) and notes
/// how long after the wake-up was due it was done. Made in the bench's own process.
class ThirdParty {
 public:
  static constexpr std::size_t kBooks = 3;
  static Result<ThirdParty> start(const Seat& seat);

  /// From now on the periods count in book `index`; in none with kBooks.
  void open_book(std::size_t index) noexcept { desk_->book.store(index, std::memory_order_release); }
  /// Nanoseconds from when the wake-up was due to the end of the work.
  [[nodiscard]] const Histogram& book(std::size_t index) const noexcept { return desk_->books[index]; }

 private:
  struct Desk {
    std::atomic<std::size_t> book;
    std::array<Histogram, kBooks> books;
  };
  explicit ThirdParty(Shared<Desk> desk) noexcept : desk_(std::move(desk)) {}
  [[noreturn]] static void work_periodically(std::uint64_t turns, Desk& desk) noexcept;

  Shared<Desk> desk_;
  Child process_;
};

}  // namespace lrpc::bench

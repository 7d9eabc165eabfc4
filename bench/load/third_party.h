// What our calls cost somebody else: a process that has nothing to do with them, and how long its work takes.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "core/child.h"
#include "report/histogram.h"

namespace lrpc::bench {

/// A process that does the same piece of work again and again, and notes how long each took. Made in the bench's own
/// process.
class ThirdParty {
 public:
  static constexpr std::size_t kBooks = 3;
  /// Wakes every millisecond and computes for 200 µs (what takes that long when nobody disturbs). Noted: from when the
  /// wake-up was due to the end of the work.
  static Result<ThirdParty> start(const Seat& seat);
  /// A build: compiles a small file by cc(1), one after the other, each in processes of its own. Noted: from the start
  /// of a compiler to its end, some 25 ms. Compiles once before it returns. Errors: not_supported: that fails here.
  static Result<ThirdParty> start_build(const Seat& seat);

  /// From now on the pieces of work count in book `index`; in none with kBooks.
  void open_book(std::size_t index) noexcept { desk_->book.store(index, std::memory_order_release); }
  /// Nanoseconds that the pieces took.
  [[nodiscard]] const Histogram& book(std::size_t index) const noexcept { return desk_->books[index]; }

 private:
  struct Desk {
    std::atomic<std::size_t> book;
    std::array<Histogram, kBooks> books;
  };
  explicit ThirdParty(Shared<Desk> desk) noexcept : desk_(std::move(desk)) {}
  static Result<ThirdParty> create();
  /// Does `work` and notes how long after `due` it was done. The work's own outcome.
  template <class Work>
  static bool note(Desk& desk, std::int64_t due, Work&& work);
  [[noreturn]] static void work_periodically(std::uint64_t turns, Desk& desk) noexcept;

  Shared<Desk> desk_;
  Child process_;
};

}  // namespace lrpc::bench
